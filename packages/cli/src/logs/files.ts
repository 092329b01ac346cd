// Reads the log files of a data folder, and follows them as they grow. A rotated file is read to its end first.

import {
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statSync,
  watch,
} from "node:fs";
import { join } from "node:path";
import { StringDecoder } from "node:string_decoder";

import { LogReader, type LogRecord, type LogText } from "./records.ts";

/** Polling interval in milliseconds, in case a file notification is missed. */
const pollMs = 1_000;
const chunkBytes = 64 * 1024;

/** All logs, each preceded by its rotated file. */
export function readLogs(folder: string): LogText[] {
  return sources(folder).map((source) => {
    const path = join(folder, `${source}.log`);
    const text = [`${path}.1`, path].map((file) => (existsSync(file) ? readFileSync(file, "utf8") : "")).join("");
    return { source, lines: text.split("\n").filter((line) => line.trim() !== "") };
  });
}

function sources(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".log"))
    .map((name) => name.slice(0, -".log".length))
    .sort();
}

/** Reports each new line of all logs, including logs created later. Ends with the signal. */
export async function followLogs(
  folder: string,
  onRecord: (record: LogRecord) => void,
  signal: AbortSignal,
): Promise<void> {
  const tails = new Map<string, Tail>();
  const readNew = (atEnd: boolean): void => {
    for (const source of sources(folder)) {
      let tail = tails.get(source);
      if (tail === undefined) {
        tail = new Tail(join(folder, `${source}.log`), source, atEnd);
        tails.set(source, tail);
      }
      for (const record of tail.read()) onRecord(record);
    }
  };
  readNew(true);
  const { promise, resolve } = Promise.withResolvers<void>();
  const watcher = watch(folder, () => readNew(false));
  const timer = setInterval(() => readNew(false), pollMs);
  signal.addEventListener("abort", () => resolve(), { once: true });
  if (signal.aborted) resolve();
  await promise;
  watcher.close();
  clearInterval(timer);
  for (const tail of tails.values()) tail.close();
}

class Tail {
  readonly #path: string;
  readonly #reader: LogReader;
  readonly #chunk = Buffer.alloc(chunkBytes);
  #fd: number;
  #position: number;
  #decoder = new StringDecoder("utf8");
  #rest = "";

  constructor(path: string, source: string, atEnd: boolean) {
    this.#path = path;
    this.#reader = new LogReader(source);
    this.#fd = openSync(path, "r");
    this.#position = atEnd ? fstatSync(this.#fd).size : 0;
  }

  *read(): Generator<LogRecord> {
    yield* this.#readOpen();
    if (!this.#wasReplaced()) return;
    closeSync(this.#fd);
    this.#fd = openSync(this.#path, "r");
    this.#position = 0;
    yield* this.#readOpen();
  }

  close(): void {
    closeSync(this.#fd);
  }

  *#readOpen(): Generator<LogRecord> {
    if (fstatSync(this.#fd).size < this.#position) this.#position = 0;
    for (;;) {
      const count = readSync(this.#fd, this.#chunk, 0, chunkBytes, this.#position);
      if (count === 0) return;
      this.#position += count;
      const lines = (this.#rest + this.#decoder.write(this.#chunk.subarray(0, count))).split("\n");
      this.#rest = lines.pop() ?? "";
      for (const line of lines) if (line.trim() !== "") yield this.#reader.read(line);
    }
  }

  #wasReplaced(): boolean {
    try {
      return statSync(this.#path).ino !== fstatSync(this.#fd).ino;
    } catch {
      return false; // rotated; the new file does not exist yet
    }
  }
}
