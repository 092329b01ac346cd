// The leader's live view of a session: its newest messages, kept in memory under the last position of the session's log, so
// that a claim brings only what is newer. The store is the truth; a view that does not fit is thrown away.
import type { Message, ViewRecord } from "@parley/contracts";
import { charsOf } from "../model/tokens.ts";

export interface View {
  /** Position of the log up to which the view is complete. */
  seq: number;
  /** What of the log the model is shown; null: all of it. */
  record: ViewRecord | null;
  /** In order; what the record does not show may be missing. */
  messages: Message[];
  /** What the messages hold, in characters. */
  chars: number;
  /** What the last request sent, for comparison with the next one; see `sent-prefix.ts`. */
  sent: string[];
  /** Tokens the provider has counted in the last prompt, in relation to what was estimated; 1 = not known. */
  tokenRatio: number;
  /** A compaction will be due before long. */
  nearlyDue: boolean;
  /** When the session's last turn ended, epoch milliseconds; 0 = not in this leader's life. */
  idleSince: number;
}

/** What is read back of a long session that was never compacted, in characters: about 160,000 tokens at three characters each. */
export const maxViewChars = 480_000;

export function emptyView(): View {
  return { seq: 0, record: null, messages: [], chars: 0, sent: [], tokenRatio: 1, nearlyDue: false, idleSince: 0 };
}

/** Adds messages that follow the view's position; those it has already are left out. */
export function extend(view: View, messages: readonly Message[], seq: number): void {
  for (const message of messages) {
    if (message.seq <= (view.messages.at(-1)?.seq ?? 0)) continue;
    view.messages.push(message);
    view.chars += messageChars(message);
  }
  view.seq = Math.max(view.seq, seq);
}

/** Shows another part of the log from now on; what is not shown any more is let go. */
export function applyRecord(view: View, record: ViewRecord): void {
  view.record = record;
  view.messages = view.messages.filter(({ seq }) => seq <= record.keepFirstTo || seq >= record.fromSeq);
  view.chars = view.messages.reduce((sum, message) => sum + messageChars(message), 0);
  view.sent = [];
}

/** Puts older messages in front. */
export function prepend(view: View, messages: Message[]): void {
  view.messages.unshift(...messages);
  view.chars += messages.reduce((sum, message) => sum + messageChars(message), 0);
}

/** Empties a view whose messages do not join on to what comes. */
export function reset(view: View): void {
  view.messages = [];
  view.chars = 0;
  view.sent = [];
}

function messageChars(message: Message): number {
  return charsOf(message.parts);
}

/** The views of the sessions used last. */
export class Views {
  readonly #views = new Map<string, View>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  of(sessionId: string): View {
    const view = this.#views.get(sessionId) ?? emptyView();
    this.#views.delete(sessionId);
    this.#views.set(sessionId, view);
    const oldest = this.#views.keys().next();
    if (this.#views.size > this.#max && oldest.done !== true) this.#views.delete(oldest.value);
    return view;
  }

  /** Sessions of this leader's life, least recently used first. */
  entries(): [string, View][] {
    return [...this.#views];
  }

  forget(sessionId: string): void {
    this.#views.delete(sessionId);
  }
}
