// The text that a running turn has streamed so far. Live events may be lost or repeated; a text with a gap is unknown until it begins again.
import type { SessionEvent } from "@parley/contracts";

type TextDelta = Extract<SessionEvent, { type: "text.delta" }>;

export class StreamedText {
  #step = -1;
  #attempt = -1;
  /** Null: a part of it was lost. */
  #text: string | null = "";

  /** The text of the latest step and attempt; null when a part of it was lost. */
  get text(): string | null {
    return this.#text;
  }

  /** Adds a delta. Text of a later step, and of a higher attempt of the same step, replaces earlier text. */
  add({ step, attempt, text, offset }: TextDelta): void {
    if (step < this.#step || (step === this.#step && attempt < this.#attempt)) return;
    if (step !== this.#step || attempt !== this.#attempt) {
      this.#step = step;
      this.#attempt = attempt;
      this.#text = "";
    }
    if (this.#text === null) return;
    const at = offset ?? this.#text.length;
    this.#text = at > this.#text.length ? null : this.#text.slice(0, at) + text;
  }
}
