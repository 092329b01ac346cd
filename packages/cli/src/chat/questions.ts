// Open approval questions, and the commands for typed answers. Pure.

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

/** Open questions, oldest first; an answer applies to the first. */
export class Questions {
  #open: Question[] = [];

  get first(): Question | null {
    return this.#open[0] ?? null;
  }

  /** Updates the open questions from a shown piece. A repeated event adds none. */
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
   * True for a typed `/approve A1` or `/deny A1` of an open question: an event reports its decision. An event does not report the
   * effect of `always`.
   */
  isTold(command: string): boolean {
    const id = /^\/(?:approve|deny)\s+(\S+)$/i.exec(command.trim())?.[1]?.toUpperCase();
    return this.#open.some(({ approvalId }) => approvalId === id);
  }

  /** An ended turn has no open questions. */
  clear(): void {
    this.#open = [];
  }

  /** The command for a typed answer to the first question; null if the word is a message. */
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
