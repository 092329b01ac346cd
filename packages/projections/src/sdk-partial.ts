// Deltas of one turn as the pieces of a streamed reply: a message begins with the first delta of a model call or of another try of it,
// and stops when the call is committed. Pure.
import type { StreamEvent } from "./sdk-types.ts";

type Kind = "text" | "thinking";

export class PartialMessages {
  #step = -1;
  #attempt = 0;
  /** Deltas up to this step come too late: its message is committed. */
  #doneStep = -1;
  /** The block that is open, and its number; undefined before the first of a message. */
  #kind: Kind | undefined;
  #index = -1;
  #open = false;

  /** `id` names the message; another try of the same call has the same one. */
  delta(id: string, kind: Kind, at: { step: number; attempt: number; text: string }): StreamEvent[] {
    const { step, attempt, text } = at;
    if (step <= this.#doneStep || step < this.#step || (step === this.#step && attempt < this.#attempt)) return [];
    const events: StreamEvent[] = [];
    if (!this.#open || step !== this.#step || attempt !== this.#attempt) {
      this.#step = step;
      this.#attempt = attempt;
      this.#open = true;
      this.#kind = undefined;
      this.#index = -1;
      events.push({ type: "message_start", message: { id, role: "assistant" } });
    }
    if (this.#kind !== kind) {
      if (this.#kind !== undefined) events.push({ type: "content_block_stop", index: this.#index });
      this.#kind = kind;
      this.#index += 1;
      const block =
        kind === "text" ? ({ type: "text", text: "" } as const) : ({ type: "thinking", thinking: "" } as const);
      events.push({ type: "content_block_start", index: this.#index, content_block: block });
    }
    const delta =
      kind === "text" ? ({ type: "text_delta", text } as const) : ({ type: "thinking_delta", thinking: text } as const);
    events.push({ type: "content_block_delta", index: this.#index, delta });
    return events;
  }

  /** The turn was taken up anew: tries are counted from the beginning again. */
  restart(): void {
    this.#attempt = 0;
    this.#open = false;
  }

  /** The call is committed, or will never be. */
  stop(): StreamEvent[] {
    this.#doneStep = this.#step;
    if (!this.#open) return [];
    this.#open = false;
    return [{ type: "content_block_stop", index: this.#index }, { type: "message_stop" }];
  }
}
