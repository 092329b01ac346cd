// Questions about tool calls that wait for a person, and what a typed word answers. Pure.

import type { Piece } from "./transcript.ts";

export interface Question {
  readonly approvalId: string;
  readonly tool: string;
}

const answers: Readonly<Record<string, { allow: boolean; always: boolean }>> = {
  y: { allow: true, always: false },
  yes: { allow: true, always: false },
  a: { allow: true, always: true },
  always: { allow: true, always: true },
  n: { allow: false, always: false },
  no: { allow: false, always: false },
};

/** Questions in the order in which they were asked; the first one is answered first. */
export class Questions {
  #open: Question[] = [];

  get first(): Question | null {
    return this.#open[0] ?? null;
  }

  /** Takes note of what is shown. An event that comes again asks nothing anew. */
  shown(piece: Piece): void {
    if (piece.type === "question" && !this.#open.some(({ approvalId }) => approvalId === piece.approvalId)) {
      this.#open.push({ approvalId: piece.approvalId, tool: piece.tool });
    }
    if (piece.type === "answered") this.settled(piece.approvalId);
  }

  settled(approvalId: string): void {
    this.#open = this.#open.filter((each) => each.approvalId !== approvalId);
  }

  /**
   * A typed `/approve A1` or `/deny A1` of a question that is open here: that it was decided is an event of its own. Not so
   * what `always` means besides.
   */
  isTold(command: string): boolean {
    const id = /^\/(?:approve|deny)\s+(\S+)$/i.exec(command.trim())?.[1]?.toUpperCase();
    return this.#open.some(({ approvalId }) => approvalId === id);
  }

  /** A turn that ended waits for nothing. */
  clear(): void {
    this.#open = [];
  }

  /** The command that a typed word stands for while something is asked; null: the word is a message. */
  commandFor(word: string): { approvalId: string; command: string } | null {
    const question = this.first;
    const key = word.trim().toLowerCase();
    const answer = Object.hasOwn(answers, key) ? answers[key] : undefined;
    if (question === null || answer === undefined) return null;
    const { approvalId } = question;
    const command = answer.allow ? `/approve ${approvalId}${answer.always ? " always" : ""}` : `/deny ${approvalId}`;
    return { approvalId, command };
  }
}
