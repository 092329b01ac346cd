// Converts the deltas of one turn to stream events: a message starts with the first delta of a model call attempt and stops when the
// call is committed. Pure.
import type { StreamEvent } from "./sdk-types.ts";

type Kind = "text" | "thinking";

export class PartialMessages {
  #step = -1;
  #attempt = 0;
  /** Deltas up to this step are late, because its message is committed. */
  #doneStep = -1;
  /** The open block; undefined before the first block of a message. */
  #kind: Kind | undefined;
  #index = -1;
  #open = false;

  /** `id` identifies the message; all attempts of a call share it. */
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

  /** The turn was claimed again, so attempts are counted from the beginning. */
  restart(): void {
    this.#attempt = 0;
    this.#open = false;
  }

  /** Closes the message: the call is committed, or never will be. */
  stop(): StreamEvent[] {
    this.#doneStep = this.#step;
    if (!this.#open) return [];
    this.#open = false;
    return [{ type: "content_block_stop", index: this.#index }, { type: "message_stop" }];
  }
}
