// The log file of one process: rotated at its size limit, with one older file. It keeps its last lines in memory for error messages. Write
// failures are reported once, and the next write tries again.

import { closeSync, fstatSync, openSync, renameSync, writeSync } from "node:fs";

import { errorMessage } from "@parley/contracts";

import { isDiskFull } from "../errors.ts";
import type { LogSink } from "../servers/process.ts";

/** 10 MiB; with the rotated file, a process's logs take at most twice this size. */
const logLimitBytes = 10 * 1024 * 1024;
const tailBytes = 8 * 1024;

export interface LogFileOptions {
  /** Default 10 MiB. */
  readonly limitBytes?: number;
  /** Receives write failures; by default they are ignored. */
  readonly writeFailures?: WriteFailureReporter | undefined;
}

export class LogFile implements Disposable {
  readonly path: string;
  readonly #limitBytes: number;
  readonly #writeFailures: WriteFailureReporter | undefined;
  #fd: number;
  #size: number;
  #tail: Buffer = Buffer.alloc(0);
  #closed = false;

  /** Opens or creates the file; throws system errors. */
  constructor(path: string, { limitBytes = logLimitBytes, writeFailures }: LogFileOptions = {}) {
    this.path = path;
    this.#limitBytes = limitBytes;
    this.#writeFailures = writeFailures;
    this.#fd = openSync(path, "a", 0o600);
    this.#size = fstatSync(this.#fd).size;
  }

  /** Appends; does nothing after it is closed. Never throws: on a full disk the output is lost. */
  write(chunk: Buffer): void {
    if (this.#closed) return;
    this.#tail = Buffer.concat([this.#tail, chunk]).subarray(-tailBytes);
    try {
      if (this.#size + chunk.length > this.#limitBytes && this.#size > 0) this.#rotate();
      this.#size += writeSync(this.#fd, chunk);
      this.#writeFailures?.succeeded(this.path);
    } catch (error) {
      this.#writeFailures?.failed(this.path, error);
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

  /** The old file stays open until the new one is open; after a failure the next write retries. */
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

/** Reports the first failed write, and when all files can be written again. */
export class WriteFailureReporter {
  readonly #where: string;
  readonly #report: LogSink;
  readonly #failing = new Set<string>();

  /** `where` is the data folder; `report` receives one sentence at the first failure and one after recovery. */
  constructor(where: string, report: LogSink) {
    this.#where = where;
    this.#report = report;
  }

  /** A write of `path` failed. */
  failed(path: string, error: unknown): void {
    const first = this.#failing.size === 0;
    this.#failing.add(path);
    if (!first) return;
    this.#report(
      isDiskFull(error)
        ? `disk full: ${path} cannot be written. Free some space on the disk of ${this.#where}; Parley continues and retries.`
        : `${path} cannot be written (${errorMessage(error)}); Parley continues and retries.`,
    );
  }

  /** A write of `path` succeeded. */
  succeeded(path: string): void {
    if (this.#failing.delete(path) && this.#failing.size === 0) this.#report(`${path} is written again`);
  }
}
