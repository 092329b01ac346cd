// A running turn's messages that its view does not show: it was taken up again after its conversation was made shorter, or the view
// of a long one was read back in part.
import { store, type ClaimedTurn, type Message } from "@parley/contracts";
import type { TurnDeps } from "./turn-deps.ts";
import type { View } from "./view.ts";

/** In order. Asks the store only where the view begins in the middle of the turn, or at its beginning. */
export async function hiddenMessages(
  { bus, storeTimeoutMs }: Pick<TurnDeps, "bus" | "storeTimeoutMs">,
  { sessionId, turnId }: Pick<ClaimedTurn, "sessionId" | "turnId">,
  { record, messages }: Pick<View, "record" | "messages">,
): Promise<Message[]> {
  const hidden: Message[] = [];
  let first = messages.find(({ seq }) => seq >= (record?.fromSeq ?? 0));
  while (first?.turnId === turnId && first.seq > 1) {
    const range = { afterSeq: 0, beforeSeq: first.seq, limit: 1_000 };
    const page = await bus.request(store.sessionMessages, { sessionId, ...range }, { timeoutMs: storeTimeoutMs });
    hidden.unshift(...page.messages.filter((message) => message.turnId === turnId));
    first = page.messages[0];
  }
  return hidden;
}
