// The input line: history and multi-line input. It is hidden while an answer is written; input typed meanwhile appears afterwards, and
// Enter still sends it. A trailing backslash continues a line, and pasted lines are one message. Typed answers to approval questions.

import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Writable } from "node:stream";

import type { Piece } from "./transcript.ts";
import type { Io } from "../io/io.ts";

const historySize = 500;

export interface PromptListener {
  message(text: string): void;
  /** Ctrl-C; `empty` when the line is empty. */
  interrupt(empty: boolean): void;
  /** Ctrl-D on an empty line, or the terminal was closed. */
  end(): void;
}

export interface Prompt {
  /** Shows the line with the input typed meanwhile. */
  show(): void;
  /** Hides the line; input is still accepted. */
  hide(): void;
  close(): void;
}

export function openPrompt(io: Io, text: string, historyFile: string, listener: PromptListener): Prompt {
  const output = new Curtain(io.stdout);
  const lines = createInterface({
    input: io.stdin,
    output,
    terminal: true,
    prompt: text,
    history: readHistory(historyFile),
    historySize,
    removeHistoryDuplicates: true,
  });
  let history: string[] = [];
  let collected: string[] = [];
  let sending: NodeJS.Immediate | undefined;
  let closed = false;
  lines.on("history", (now) => {
    history = now;
  });
  lines.on("line", (line) => {
    const goesOn = line.endsWith("\\");
    collected.push(goesOn ? line.slice(0, -1) : line);
    clearImmediate(sending);
    if (goesOn) {
      lines.setPrompt("… ");
      if (output.isOpen) lines.prompt();
      return;
    }
    // The lines of one paste arrive in one chunk, before the next immediate.
    sending = setImmediate(() => {
      const message = collected.join("\n");
      collected = [];
      lines.setPrompt(text);
      listener.message(message);
    });
  });
  lines.on("SIGINT", () => {
    const empty = lines.line === "" && collected.length === 0;
    collected = [];
    lines.setPrompt(text);
    lines.write(null, { ctrl: true, name: "e" });
    lines.write(null, { ctrl: true, name: "u" });
    listener.interrupt(empty);
  });
  lines.on("close", () => {
    if (!closed) listener.end();
  });
  return {
    show: () => {
      output.isOpen = true;
      lines.prompt(true);
    },
    hide: () => {
      if (output.isOpen) io.stdout.write("\r\u001B[J");
      output.isOpen = false;
    },
    close: () => {
      closed = true;
      clearImmediate(sending);
      output.isOpen = false;
      lines.close();
      if (history.length > 0) writeHistory(historyFile, history);
    },
  };
}

/** Forwards to standard output, or drops the output while hidden. */
class Curtain extends Writable {
  isOpen = false;
  readonly isTTY = true;
  readonly #stream: NodeJS.WriteStream;

  constructor(stream: NodeJS.WriteStream) {
    super();
    this.#stream = stream;
    stream.on("resize", () => this.emit("resize"));
  }

  get columns(): number {
    return this.#stream.columns;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.isOpen) this.#stream.write(chunk);
    done();
  }
}

function readHistory(file: string): string[] {
  try {
    return readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line !== "");
  } catch {
    return [];
  }
}

function writeHistory(file: string, history: readonly string[]): void {
  try {
    // Write, then rename: on a full disk the previous history stays.
    writeFileSync(`${file}.new`, `${history.slice(0, historySize).join("\n")}\n`, { mode: 0o600 });
    renameSync(`${file}.new`, file);
  } catch {
    // Failing to store the history is not an error.
  }
}

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
   * True for a typed `/approve A1` or `/deny A1 [reason]` of an open question: an event reports its decision. An event does not report the
   * effect of `always`.
   */
  isTold(command: string): boolean {
    const named = /^\/(?:approve\s+(\S+)|deny\s+(\S+)(?:\s.*)?)$/is.exec(command.trim());
    const id = (named?.[1] ?? named?.[2])?.toUpperCase();
    return this.#open.some(({ approvalId }) => approvalId === id);
  }

  /** An ended turn has no open questions. */
  clear(): void {
    this.#open = [];
  }

  /** The command for a typed answer to the first question; null if it is a message. A denial may be followed by its reason. */
  commandFor(typed: string): { approvalId: string; command: string } | null {
    const question = this.first;
    const [, denial, reason] = /^(no?)[\s,:]+(\S.*)$/is.exec(typed.trim()) ?? [];
    if (question !== null && denial !== undefined && reason !== undefined) {
      return { approvalId: question.approvalId, command: `/deny ${question.approvalId} ${reason}` };
    }
    const key = typed.trim().toLowerCase();
    const answer = Object.hasOwn(answers, key) ? answers[key] : undefined;
    if (question === null || answer === undefined) return null;
    const { approvalId } = question;
    const command = answer.allow ? `/approve ${approvalId}${answer.always ? " always" : ""}` : `/deny ${approvalId}`;
    return { approvalId, command };
  }
}
