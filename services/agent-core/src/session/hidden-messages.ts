// Messages of a running turn that its view does not contain: the turn was resumed after a compaction, or only part of a
// long view was loaded.
import { store, type ClaimedTurn, type Message } from "@parley/contracts";
import type { LeaderStore } from "../store-client/leader-store.ts";
import type { SessionView } from "./view.ts";

/** In order. Requests them from the store only if the view starts inside the turn or at its start. */
export async function hiddenMessages(
  leaderStore: LeaderStore,
  { sessionId, turnId }: Pick<ClaimedTurn, "sessionId" | "turnId">,
  { record, messages }: Pick<SessionView, "record" | "messages">,
): Promise<Message[]> {
  const hidden: Message[] = [];
  let first = messages.find(({ seq }) => seq >= (record?.fromSeq ?? 0));
  while (first?.turnId === turnId && first.seq > 1) {
    const range = { afterSeq: 0, beforeSeq: first.seq, limit: 1_000 };
    const page = await leaderStore.request(store.sessionMessages, { sessionId, ...range });
    hidden.unshift(...page.messages.filter((message) => message.turnId === turnId));
    first = page.messages[0];
  }
  return hidden;
}
