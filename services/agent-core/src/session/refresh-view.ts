// Reads a session's log from the store: to update a view to the store's state, backwards up to the view's limit where messages
// are missing, and to find messages of a running turn that its view does not contain.
import { type ClaimedTurn, type Message, type OutputOf, type SessionState, store } from "@parley/contracts";
import type { LeaderStore } from "../store-client/leader-store.ts";
import { type SessionView, appendMessages, applyRecord, maxViewChars, prepend, reset } from "./view.ts";

/** The store's answer to a caller that knows the log up to some position. */
interface Seen {
  /** Those after that position; `gap`: messages are missing before the first one. */
  messages: readonly Message[];
  gap: boolean;
  session: Pick<SessionState, "view">;
}

export async function refreshView(
  leaderStore: LeaderStore,
  sessionId: string,
  view: SessionView,
  seen: Seen,
): Promise<void> {
  const { messages, gap, session } = seen;
  const record = session.view;
  if ((record?.version ?? 0) !== (view.record?.version ?? 0)) {
    if (record === null) view.record = null;
    else applyRecord(view, record);
  }
  if (gap) reset(view);
  appendMessages(view, messages, messages.at(-1)?.seq ?? view.seq);
  let more = gap;
  while (more && view.chars < maxViewChars) {
    const page = await read(leaderStore, sessionId, {
      afterSeq: Math.max(0, (record?.fromSeq ?? 0) - 1),
      beforeSeq: view.messages[0]?.seq ?? 0,
    });
    prepend(view, page.messages);
    more = page.more && page.messages.length > 0;
  }
  // The protected first messages come before the range that a record omits.
  const keepFirstTo = record?.keepFirstTo ?? 0;
  if (keepFirstTo > 0 && (view.messages[0]?.seq ?? 0) > keepFirstTo) {
    const head = await read(leaderStore, sessionId, { afterSeq: 0, beforeSeq: keepFirstTo + 1 });
    prepend(view, head.messages);
  }
}

function read(leaderStore: LeaderStore, sessionId: string, range: { afterSeq: number; beforeSeq: number }) {
  return leaderStore.request(store.sessionMessages, { sessionId, ...range, limit: 1000 });
}

/** Messages of the running turn that the view omits, oldest first. Asks the store only if the view begins with a message of that turn. */
export async function messagesBeforeView(
  leaderStore: LeaderStore,
  { sessionId, turnId }: Pick<ClaimedTurn, "sessionId" | "turnId">,
  { record, messages }: Pick<SessionView, "record" | "messages">,
): Promise<Message[]> {
  const earlier: Message[] = [];
  const shown = new Set(messages.map(({ seq }) => seq));
  let first = messages.find(({ seq }) => seq >= (record?.fromSeq ?? 0));
  while (first?.turnId === turnId && first.seq > 1) {
    const range = { afterSeq: 0, beforeSeq: first.seq, limit: 1_000 };
    const page = await leaderStore.request(store.sessionMessages, { sessionId, ...range });
    earlier.unshift(...page.messages.filter((message) => message.turnId === turnId && !shown.has(message.seq)));
    first = page.messages[0];
  }
  return earlier;
}

/**
 * The claim of a turn that the store started together with its message. Undefined when the turn must be claimed instead: another epoch owns it, or the view contains its message, because the turn was claimed
 * after a lost or late hint. A late hint about a turn that has ended cannot write: the store accepts steps of running turns only.
 */
export function claimOfStarted(
  started: store.StartedTurn | undefined,
  epoch: number,
  view: Pick<SessionView, "seq">,
): Exclude<OutputOf<typeof store.turnClaim>, { status: "empty" | "dead" }> | undefined {
  if (started === undefined || started.epoch !== epoch || view.seq >= started.message.seq) return undefined;
  const { turn, session, message } = started;
  return {
    status: "started",
    turn,
    session,
    steerable: false,
    messages: [message],
    gap: view.seq < message.seq - 1,
  };
}
