// Cuts streamed text at stop sequences: text that may be the beginning of one is held back until more arrives. Pure.

export class StopCut {
  readonly #stop: readonly string[];
  #step = 0;
  #attempt = 0;
  #text = "";
  #shown = 0;

  constructor(stop: readonly string[]) {
    this.#stop = stop;
  }

  /** The running step starts over. */
  restart(): void {
    this.#step = 0;
  }

  /** The text that may be shown after this delta of a model call. */
  delta(step: number, attempt: number, text: string): string {
    if (step !== this.#step || attempt !== this.#attempt) {
      this.#step = step;
      this.#attempt = attempt;
      this.#text = "";
      this.#shown = 0;
    }
    this.#text += text;
    const end = Math.max(this.#shown, this.#safeEnd());
    const piece = this.#text.slice(this.#shown, end);
    this.#shown = end;
    return piece;
  }

  #safeEnd(): number {
    let end = this.#text.length;
    for (const stop of this.#stop) {
      const found = this.#text.indexOf(stop, Math.max(0, this.#shown - stop.length));
      end = Math.min(end, found >= 0 ? found : this.#text.length - pendingLength(this.#text, stop));
    }
    return end;
  }
}

/** The length of the longest end of the text with which `stop` begins. */
function pendingLength(text: string, stop: string): number {
  for (let length = Math.min(stop.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(stop.slice(0, length))) return length;
  }
  return 0;
}
