// Merges the deltas of a turn into one append-only text. Deltas may be lost, and a retried model call repeats its text; the committed
// answer at the end decides what remains to be shown. Pure.

export class AnswerText {
  #shown = "";
  #step = -1;
  #attempt = 0;
  /** The text of the current attempt of the current step. */
  #text = "";
  /** The shown text of the current step. */
  #stepShown = "";
  /** The current attempt repeats text that an earlier attempt has shown. */
  #catchingUp = false;

  /** The turn was claimed again, possibly by another leader, so the running step starts over. */
  restart(): void {
    this.#attempt = 0;
    this.#text = "";
    this.#catchingUp = this.#stepShown !== "";
  }

  /** Returns the text to show after this delta. */
  delta(step: number, attempt: number, text: string): string {
    if (step !== this.#step) {
      this.#step = step;
      this.#attempt = attempt;
      this.#text = "";
      this.#stepShown = "";
      this.#catchingUp = false;
    } else if (attempt < this.#attempt) return "";
    else if (attempt > this.#attempt) {
      const retried = this.#attempt !== 0;
      this.#attempt = attempt;
      if (retried) {
        this.#text = "";
        this.#catchingUp = this.#stepShown !== "";
      }
    }
    this.#text += text;
    if (!this.#catchingUp) return this.#show(text);
    if (this.#stepShown.startsWith(this.#text)) return "";
    this.#catchingUp = false;
    if (this.#text.startsWith(this.#stepShown)) return this.#show(this.#text.slice(this.#stepShown.length));
    this.#stepShown = "";
    return this.#show(this.#text);
  }

  /** Returns the text to show when the turn ends with this answer. */
  finish(answer: string): string {
    for (const shown of [this.#stepShown, this.#shown]) {
      if (shown === "") continue;
      const from = positionAfter(answer, shown);
      if (from !== null) return answer.slice(from).trim() === "" ? "" : answer.slice(from);
    }
    this.#stepShown = "";
    return this.#show(answer);
  }

  #show(text: string): string {
    if (text === "") return "";
    const piece = this.#stepShown === "" && this.#shown !== "" ? `\n\n${text}` : text;
    this.#stepShown += text;
    this.#shown += piece;
    return piece;
  }
}

/**
 * Returns the position in `text` after `beginning`; null when `text` does not begin with it. White space is ignored, because the parts of
 * an answer are joined by blank lines and their deltas are not.
 */
export function positionAfter(text: string, beginning: string): number | null {
  if (text.startsWith(beginning)) return beginning.length;
  let at = 0;
  for (const sign of beginning) {
    if (/\s/.test(sign)) continue;
    while (at < text.length && /\s/.test(text.charAt(at))) at++;
    if (!text.startsWith(sign, at)) return null;
    at += sign.length;
  }
  return at;
}

/** Returns the part of an answer after the texts in `told`: after the last one, after all of them joined, or the whole answer. */
export function remainder(answer: string, committed: readonly string[]): string {
  for (const before of [committed.at(-1) ?? "", committed.join("\n\n")]) {
    const from = before === "" ? null : positionAfter(answer, before);
    if (from !== null) return answer.slice(from);
  }
  return answer;
}
