// Runs ripgrep, a linear search, as a program of its own: in the sandbox where there is one. It follows no links.
import { spawn } from "node:child_process";
import type { FileHandle } from "node:fs/promises";
import { rgPath } from "@vscode/ripgrep";

/** Where to search. */
export interface SearchPlace {
  /** Host path of the directory. */
  directory: string;
  /** Searches this open file instead. */
  file?: FileHandle;
  /** For the sandbox: the folder that it shows, and the directory below it. Omitted: the search runs outside. */
  inside?: { folder: string; directory: string };
}

/** The command line that runs a program in the sandbox, where it can only read `folder`; undefined when there is no sandbox. */
export type Confine = (place: NonNullable<SearchPlace["inside"]>, program: string) => readonly string[] | undefined;

/** How searches run. */
export interface ProgramOptions {
  confine: Confine;
  /** Of address space: the program holds whole lines. Not enforced on macOS. */
  maxMemoryBytes: number;
  signal: AbortSignal;
}

export interface ProgramRun {
  args: readonly string[];
  place: SearchPlace;
  /** Its standard input when the place is a directory; omitted: empty. */
  input?: FileHandle | undefined;
  /** The byte that ends each record. */
  separator: number;
  /** Takes a record, of which only the first 4 MiB are passed on; false ends the search. */
  onRecord: (record: Buffer) => boolean;
  /** Takes a line of the standard error, of which only the first 8 KiB are passed on. */
  onError: (line: string) => void;
}

/** How a search ended by itself. */
export interface ProgramEnd {
  /** Null when a signal killed it. */
  exitCode: number | null;
  /** The beginning of its standard error, at most 64 KiB. */
  errors: string;
  /** The last line of its standard error. */
  lastError: string;
}

const maxRecordBytes = 4 * 1024 * 1024;
const maxErrorLineBytes = 8 * 1024;
const maxErrorCharacters = 64 * 1024;

/**
 * Resolves with undefined when `onRecord` ended the search. Rejects with the signal's reason, and when the program cannot be started.
 * The program is dead then.
 */
export async function runRipgrep(
  { args, place, input, separator, onRecord, onError }: ProgramRun,
  { confine, maxMemoryBytes, signal }: ProgramOptions,
): Promise<ProgramEnd | undefined> {
  signal.throwIfAborted();
  const confined = place.inside === undefined ? undefined : confine(place.inside, rgPath);
  const argv = [...(confined ?? [rgPath]), ...args, place.file === undefined ? "./" : "-"];
  const child = spawn("/bin/sh", ["-c", memoryScript(maxMemoryBytes), ...argv], {
    cwd: confined === undefined ? place.directory : "/",
    env: {},
    stdio: [(place.file ?? input)?.fd ?? "ignore", "pipe", "pipe"],
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  const { pid, stdout, stderr } = child;
  if (pid === undefined || stdout === null || stderr === null) {
    // Without a process, `kill` would signal the service's own process group, and there may be no streams.
    await ended;
    throw new Error("the search program could not be started");
  }
  ended.catch(() => undefined);
  const kill = () => child.kill("SIGKILL");
  signal.addEventListener("abort", kill, { once: true });
  try {
    const errors = readErrors(stderr, onError);
    errors.catch(() => undefined);
    for await (const record of records(stdout, separator, maxRecordBytes)) {
      if (!onRecord(record)) return undefined;
    }
    const end = { exitCode: await ended, ...(await errors) };
    signal.throwIfAborted();
    return end;
  } finally {
    signal.removeEventListener("abort", kill);
    kill();
    await ended.catch(() => undefined);
  }
}

/** Limits its memory where the system can, then becomes the program. */
function memoryScript(maxMemoryBytes: number): string {
  return `ulimit -v ${Math.floor(maxMemoryBytes / 1024)} 2>/dev/null; exec "$0" "$@"`;
}

async function readErrors(stream: AsyncIterable<Buffer>, onError: (line: string) => void) {
  let errors = "";
  let lastError = "";
  for await (const record of records(stream, 10, maxErrorLineBytes)) {
    const line = record.toString("utf8");
    if (errors.length + line.length < maxErrorCharacters) errors += `${line}\n`;
    if (line.trim() !== "") lastError = line;
    onError(line);
  }
  return { errors, lastError };
}

/** The records that end with the separator; of a longer one, only the beginning. */
async function* records(
  stream: AsyncIterable<Buffer>,
  separator: number,
  maxBytes: number,
): AsyncGenerator<Buffer, void, undefined> {
  let kept: Buffer[] = [];
  let bytes = 0;
  const keep = (piece: Buffer) => {
    if (bytes < maxBytes) kept.push(piece.subarray(0, maxBytes - bytes));
    bytes += piece.length;
  };
  for await (const chunk of stream) {
    let start = 0;
    for (let end = chunk.indexOf(separator); end >= 0; end = chunk.indexOf(separator, start)) {
      keep(chunk.subarray(start, end));
      yield Buffer.concat(kept);
      kept = [];
      bytes = 0;
      start = end + 1;
    }
    keep(chunk.subarray(start));
  }
}
