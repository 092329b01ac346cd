// The text of one model call for a terminal. Deltas, which may be lost or repeated, become a text that only grows; the committed message
// completes it. Deltas are shown only if the start of their attempt was received: after a reconnect in the middle of a call, the text
// appears with the committed message. Pure.

import { positionAfter } from "@parley/projections";

export class LiveText {
  #step = -1;
  #attempt = 0;
  /** The text of the current attempt. */
  #text = "";
  /** The text on the screen. */
  #shown = "";
  /** The text on the screen belongs to this attempt. */
  #level = true;
  /** Deltas up to this step are late: its text is already committed. */
  #doneStep = -1;
  /** The start of this attempt was received on this connection. */
  #whole = false;
  /** An event of this turn was received on this connection, so every later attempt is received from its start. */
  #listening = false;

  get shown(): string {
    return this.#shown;
  }

  /** After a reconnect, deltas from the middle of an attempt are unusable. */
  connected(): void {
    this.#listening = false;
    this.#whole = false;
  }

  /** A live event of this turn that is not a delta. */
  eventReceived(): void {
    this.#listening = true;
  }

  /** The turn was claimed again, perhaps by another leader: the running call restarts. */
  restart(): void {
    this.#listening = true;
    this.#attempt = 0;
    this.#text = "";
    this.#level = this.#shown === "";
    this.#whole = true;
  }

  /** Switches to the attempt of a delta; false when the delta is late or the start of its attempt was missed. */
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

  /** The text that a delta adds to the screen. `restart`: the text does not continue the screen but restarts from its beginning. */
  delta(step: number, attempt: number, text: string): { text: string; restart: boolean } {
    if (!this.enter(step, attempt)) return { text: "", restart: false };
    this.#text += text;
    if (this.#level) {
      this.#shown += text;
      return { text, restart: false };
    }
    return this.#shown.startsWith(this.#text) ? { text: "", restart: false } : this.#bring(this.#text);
  }

  /** The text that the committed message adds to the screen; then the next call begins. */
  commit(text: string): { text: string; restart: boolean } {
    const rest = this.#bring(text);
    this.#doneStep = this.#step;
    this.#shown = "";
    this.#text = "";
    this.#attempt = 0;
    this.#whole = false;
    return rest;
  }

  /** Updates the screen to a text. */
  #bring(text: string): { text: string; restart: boolean } {
    const from = positionAfter(text, this.#shown);
    this.#shown = text;
    this.#level = true;
    return from === null ? { text, restart: true } : { text: text.slice(from), restart: false };
  }
}
