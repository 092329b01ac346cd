// One process's log: appended to, moved aside once when it gets large, and its end remembered for error messages.

import { closeSync, fstatSync, openSync, renameSync, writeSync } from "node:fs";

import type { WriteTrouble } from "./write-trouble.ts";

/** 10 MiB; with the one that was moved aside, a process's logs take at most twice that. */
const LOG_LIMIT_BYTES = 10 * 1024 * 1024;
const TAIL_BYTES = 8 * 1024;

export interface LogFileOptions {
  /** Default 10 MiB. */
  readonly limitBytes?: number;
  /** Where failures to write are reported; by default they are not. */
  readonly trouble?: WriteTrouble | undefined;
}

export class LogFile implements Disposable {
  readonly path: string;
  readonly #limitBytes: number;
  readonly #trouble: WriteTrouble | undefined;
  #fd: number;
  #size: number;
  #tail: Buffer = Buffer.alloc(0);
  #closed = false;

  /** Opens the file, made when missing; throws what the system throws. */
  constructor(path: string, { limitBytes = LOG_LIMIT_BYTES, trouble }: LogFileOptions = {}) {
    this.path = path;
    this.#limitBytes = limitBytes;
    this.#trouble = trouble;
    this.#fd = openSync(path, "a", 0o600);
    this.#size = fstatSync(this.#fd).size;
  }

  /** Appends; does nothing once it is closed. Never throws: what a full disk does not take is lost. */
  write(chunk: Buffer): void {
    if (this.#closed) return;
    this.#tail = Buffer.concat([this.#tail, chunk]).subarray(-TAIL_BYTES);
    try {
      if (this.#size + chunk.length > this.#limitBytes && this.#size > 0) this.#rotate();
      this.#size += writeSync(this.#fd, chunk);
      this.#trouble?.succeeded(this.path);
    } catch (error) {
      this.#trouble?.failed(this.path, error);
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

  /** The old file stays open until the new one is: where that fails, the next write tries again. */
  #rotate(): void {
    renameSync(this.path, `${this.path}.1`);
    const fd = openSync(this.path, "a", 0o600);
    closeSync(this.#fd);
    this.#fd = fd;
    this.#size = 0;
  }

  [Symbol.dispose](): void {
    if (this.#closed) return;
    this.#closed = true;
    closeSync(this.#fd);
  }
}
