// The leader's live view of a session: its newest messages, kept in memory under the last position of the session's log, so
// that a claim brings only what is newer. The store is the truth; a view that does not fit is thrown away.
import type { Message } from "@parley/contracts";

export interface View {
  /** Position of the log up to which the view is complete. */
  seq: number;
  /** In order; the oldest may be missing. */
  messages: Message[];
  /** What the messages hold, in characters. */
  chars: number;
}

/** What a model may be shown of a session, in characters: about 160,000 tokens at three characters each. */
export const maxViewChars = 480_000;

export function emptyView(): View {
  return { seq: 0, messages: [], chars: 0 };
}

/** Adds messages that follow the view's position; those it has already are left out. */
export function extend(view: View, messages: Message[], seq: number): void {
  for (const message of messages) {
    if (message.seq <= (view.messages.at(-1)?.seq ?? 0)) continue;
    view.messages.push(message);
    view.chars += messageChars(message);
  }
  view.seq = Math.max(view.seq, seq);
}

/**
 * Cuts the oldest turns off a view that has outgrown the limit, down to half of it: cutting rarely keeps the beginning of the
 * prompt, and with it the provider's cache, the same for many turns. A cut is only made before a person's message.
 */
export function trim(view: View, limitChars = maxViewChars): void {
  if (view.chars <= limitChars) return;
  const sizes = view.messages.map(messageChars);
  let total = view.chars;
  let cut = 0;
  let kept = total;
  for (let index = 0; index < view.messages.length - 1; index++) {
    total -= sizes[index] ?? 0;
    if (view.messages[index + 1]?.role !== "user") continue;
    cut = index + 1;
    kept = total;
    if (total <= limitChars / 2) break;
  }
  view.messages.splice(0, cut);
  view.chars = kept;
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
}

function messageChars(message: Message): number {
  return message.parts.reduce((sum, part) => {
    switch (part.type) {
      case "text":
      case "reasoning":
        return sum + part.text.length;
      case "tool_call":
        return sum + part.input.length + part.name.length;
      case "tool_result":
        return sum + part.content.length;
      case "binary":
        return sum + part.data.length / 8;
      case "provider":
        return sum + part.raw.length;
      default:
        return sum;
    }
  }, 0);
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

  forget(sessionId: string): void {
    this.#views.delete(sessionId);
  }
}
