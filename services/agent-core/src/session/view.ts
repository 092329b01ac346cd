// The leader's view of a session: its newest messages in memory, with the last position of the session's log, so that a
// claim returns only newer ones. The store is the truth; an inconsistent view is discarded.
import type { Message, ViewRecord } from "@parley/contracts";
import { charsOf } from "../model/tokens.ts";

export interface SessionView {
  /** Position of the log up to which the view is complete. */
  seq: number;
  /** Which part of the log the model is shown; null: all of it. */
  record: ViewRecord | null;
  /** In order; messages that the record omits may be missing. */
  messages: Message[];
  /** Size of the messages in characters. */
  chars: number;
  /** What the last request sent, for comparison with the next one; see `prefix-check.ts`. */
  sent: string[];
  /** Ratio of the provider's token count to the estimate for the last prompt; 1 = not known. */
  tokenRatio: number;
  /** A compaction will soon be due. */
  nearlyDue: boolean;
  /** When the session's last turn ended, epoch milliseconds; 0 = no turn ended in this process instance. */
  idleSince: number;
}

/** Limit for reloading a long session without compaction, in characters: about 160,000 tokens of three characters. */
export const maxViewChars = 480_000;

export function emptyView(): SessionView {
  return { seq: 0, record: null, messages: [], chars: 0, sent: [], tokenRatio: 1, nearlyDue: false, idleSince: 0 };
}

/** Appends messages after the view's position; known messages are skipped. */
export function appendMessages(view: SessionView, messages: readonly Message[], seq: number): void {
  for (const message of messages) {
    if (message.seq <= (view.messages.at(-1)?.seq ?? 0)) continue;
    view.messages.push(message);
    view.chars += messageChars(message);
  }
  view.seq = Math.max(view.seq, seq);
}

/** Switches to another part of the log; messages that it omits are released. */
export function applyRecord(view: SessionView, record: ViewRecord): void {
  view.record = record;
  view.messages = view.messages.filter(({ seq }) => seq <= record.keepFirstTo || seq >= record.fromSeq);
  view.chars = view.messages.reduce((sum, message) => sum + messageChars(message), 0);
  view.sent = [];
}

/** Adds older messages at the front. */
export function prepend(view: SessionView, messages: Message[]): void {
  view.messages.unshift(...messages);
  view.chars += messages.reduce((sum, message) => sum + messageChars(message), 0);
}

/** Empties a view whose messages have a gap to the next ones. */
export function reset(view: SessionView): void {
  view.messages = [];
  view.chars = 0;
  view.sent = [];
}

function messageChars(message: Message): number {
  return charsOf(message.parts);
}

/** The views of the most recently used sessions. */
export class Views {
  readonly #views = new Map<string, SessionView>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  of(sessionId: string): SessionView {
    const view = this.#views.get(sessionId) ?? emptyView();
    this.#views.delete(sessionId);
    this.#views.set(sessionId, view);
    const oldest = this.#views.keys().next();
    if (this.#views.size > this.#max && oldest.done !== true) this.#views.delete(oldest.value);
    return view;
  }

  /** Sessions with a view, least recently used first. */
  entries(): [string, SessionView][] {
    return [...this.#views];
  }

  forget(sessionId: string): void {
    this.#views.delete(sessionId);
  }
}
