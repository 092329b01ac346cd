// The input line: history and multi-line input. It is hidden while an answer is written; input typed meanwhile appears afterwards, and
// Enter still sends it. A trailing backslash continues a line, and pasted lines are one message.

import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Writable } from "node:stream";

import type { Io } from "../io.ts";

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
