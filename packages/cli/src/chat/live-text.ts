// The text of one model call as a terminal shows it: deltas that may be lost or said anew become a text that only grows, and the
// committed message decides what is still to be shown. Deltas are only shown when their beginning was heard: after a new connection
// in the middle of a call the committed message is waited for. Pure.

import { positionAfter } from "@parley/projections";

export class LiveText {
  #step = -1;
  #attempt = 0;
  /** The text of the current try. */
  #text = "";
  /** What is on the screen. */
  #shown = "";
  /** What is on the screen is the text of this try. */
  #level = true;
  /** Deltas up to this step are too late: its text is committed. */
  #doneStep = -1;
  /** This try's beginning was heard on this connection. */
  #whole = false;
  /** Something of this turn was heard on this connection, so whatever begins from now on is heard from its beginning. */
  #listening = false;

  get shown(): string {
    return this.#shown;
  }

  /** A new connection: what is said in the middle of a try is of no use. */
  connected(): void {
    this.#listening = false;
    this.#whole = false;
  }

  /** A live event of this turn that is not a delta. */
  heard(): void {
    this.#listening = true;
  }

  /** The turn was taken up, perhaps by another leader: the running call begins anew. */
  restart(): void {
    this.#listening = true;
    this.#attempt = 0;
    this.#text = "";
    this.#level = this.#shown === "";
    this.#whole = true;
  }

  /** Enters the try of a delta; false when the delta is late or its beginning was missed. */
  enter(step: number, attempt: number): boolean {
    if (step <= this.#doneStep || step < this.#step || (step === this.#step && attempt < this.#attempt)) return false;
    if (step !== this.#step) {
      this.#shown = "";
      this.#begin(step, attempt);
    } else if (attempt !== this.#attempt) this.#begin(step, attempt);
    this.#listening = true;
    return this.#whole;
  }

  #begin(step: number, attempt: number): void {
    this.#step = step;
    this.#attempt = attempt;
    this.#text = "";
    this.#level = this.#shown === "";
    this.#whole = this.#listening;
  }

  /** What a delta adds to the screen. `anew`: it does not go on where the screen is; the text is said again from its beginning. */
  delta(step: number, attempt: number, text: string): { text: string; anew: boolean } {
    if (!this.enter(step, attempt)) return { text: "", anew: false };
    this.#text += text;
    if (this.#level) {
      this.#shown += text;
      return { text, anew: false };
    }
    return this.#shown.startsWith(this.#text) ? { text: "", anew: false } : this.#bring(this.#text);
  }

  /** What the committed text adds to the screen; the next call begins. */
  commit(text: string): { text: string; anew: boolean } {
    const rest = this.#bring(text);
    this.#doneStep = this.#step;
    this.#shown = "";
    this.#text = "";
    this.#attempt = 0;
    this.#whole = false;
    return rest;
  }

  /** Brings the screen level with a text. */
  #bring(text: string): { text: string; anew: boolean } {
    const from = positionAfter(text, this.#shown);
    this.#shown = text;
    this.#level = true;
    return from === null ? { text, anew: true } : { text: text.slice(from), anew: false };
  }
}
