// Turns the deltas of a turn into one text that only ever grows. Deltas may be lost, and a model call that is tried again says
// its text anew; the committed answer at the end decides what is still to be shown. Pure.

export class AnswerText {
  #shown = "";
  #step = -1;
  #attempt = 0;
  /** The text of the current try of the current step. */
  #text = "";
  /** What of the current step has been shown. */
  #stepShown = "";
  /** The current try repeats what an earlier one has shown. */
  #catchingUp = false;

  /** The turn was taken up again, perhaps by another leader: the running step begins anew. */
  restart(): void {
    this.#attempt = 0;
    this.#text = "";
    this.#catchingUp = this.#stepShown !== "";
  }

  /** What is to be shown after this delta. */
  delta(step: number, attempt: number, text: string): string {
    if (step !== this.#step) {
      this.#step = step;
      this.#attempt = attempt;
      this.#text = "";
      this.#stepShown = "";
      this.#catchingUp = false;
    } else if (attempt < this.#attempt) return "";
    else if (attempt > this.#attempt) {
      const anew = this.#attempt !== 0;
      this.#attempt = attempt;
      if (anew) {
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

  /** What is to be shown when the turn ends with this answer. */
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
 * Where `text` goes on after `beginning`; null when it does not begin so. White space is not compared: an answer's parts are
 * joined by blank lines, their deltas are not.
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

/** What of a turn's answer was in none of the texts that were told: what follows the last one, or all of them, or the whole answer. */
export function restOf(answer: string, told: readonly string[]): string {
  for (const before of [told.at(-1) ?? "", told.join("\n\n")]) {
    const from = before === "" ? null : positionAfter(answer, before);
    if (from !== null) return answer.slice(from);
  }
  return answer;
}
