// One process's log: appended to, moved aside once when it gets large, and its end remembered for error messages.

import { closeSync, fstatSync, openSync, renameSync, writeSync } from "node:fs";

/** 10 MiB; with the one that was moved aside, a process's logs take at most twice that. */
const LOG_LIMIT_BYTES = 10 * 1024 * 1024;
const TAIL_BYTES = 8 * 1024;

export class LogFile implements Disposable {
  readonly path: string;
  readonly #limitBytes: number;
  #fd: number;
  #size: number;
  #tail: Buffer = Buffer.alloc(0);
  #closed = false;

  constructor(path: string, limitBytes = LOG_LIMIT_BYTES) {
    this.path = path;
    this.#limitBytes = limitBytes;
    this.#fd = openSync(path, "a", 0o600);
    this.#size = fstatSync(this.#fd).size;
  }

  /** Appends; does nothing once it is closed. */
  write(chunk: Buffer): void {
    if (this.#closed) return;
    this.#tail = Buffer.concat([this.#tail, chunk]).subarray(-TAIL_BYTES);
    if (this.#size + chunk.length > this.#limitBytes && this.#size > 0) this.#rotate();
    this.#size += chunk.length;
    try {
      writeSync(this.#fd, chunk);
    } catch {
      // A full disk must not take the supervisor down with the log.
    }
  }

  /** The last lines written since this process opened it. */
  lastLines(count = 15): string[] {
    return this.#tail
      .toString("utf8")
      .split("\n")
      .filter((line) => line.trim() !== "")
      .slice(-count);
  }

  #rotate(): void {
    closeSync(this.#fd);
    renameSync(this.path, `${this.path}.1`);
    this.#fd = openSync(this.path, "a", 0o600);
    this.#size = 0;
  }

  [Symbol.dispose](): void {
    if (this.#closed) return;
    this.#closed = true;
    closeSync(this.#fd);
  }
}
