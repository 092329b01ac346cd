// Runs ripgrep, a linear search, as a program of its own: in the sandbox where there is one. It follows no links.
import { spawn } from "node:child_process";
import type { FileHandle } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { rgPath } from "@vscode/ripgrep";

/** Where to search. */
export interface SearchPlace {
  /** Host path of the directory. */
  directory: string;
  /** Searches this open file instead. */
  file?: FileHandle;
  /** For the sandbox: the folder that it shows, and the directory below it. Left out: the search runs outside. */
  inside?: { folder: string; directory: string };
}

/** The command line that runs a program in the sandbox, where it can only read `folder`; undefined when there is no sandbox. */
export type Confine = (place: NonNullable<SearchPlace["inside"]>, program: string) => readonly string[] | undefined;

/** How a search ended. */
interface SearchEnd {
  exitCode: number | null;
  errors: string;
}

/** Limits the memory of the program, in KiB: it holds whole lines. */
const memoryScript = `ulimit -v ${1024 * 1024}; exec "$0" "$@"`;
/** Of a longer record, only the beginning is returned. */
const maxRecordBytes = 4 * 1024 * 1024;

/**
 * Calls `onRecord` for each record that ends with `separator`, until it returns false. Resolves with undefined when it did. Rejects with
 * the signal's reason, and when the program cannot be started; it is then dead.
 */
export async function runRipgrep(
  args: readonly string[],
  place: SearchPlace,
  separator: number,
  confine: Confine,
  onRecord: (record: Buffer) => boolean,
  signal: AbortSignal,
): Promise<SearchEnd | undefined> {
  signal.throwIfAborted();
  const confined = place.inside === undefined ? undefined : confine(place.inside, rgPath);
  const argv = [...(confined ?? [rgPath]), ...args, place.file === undefined ? "./" : "-"];
  const child = spawn("/bin/sh", ["-c", memoryScript, ...argv], {
    cwd: confined === undefined ? place.directory : "/",
    env: {},
    stdio: [place.file?.fd ?? "ignore", "pipe", "pipe"],
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  ended.catch(() => undefined);
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error("the search program could not be started");
  const kill = () => child.kill("SIGKILL");
  signal.addEventListener("abort", kill, { once: true });
  try {
    const errors = text(stderr);
    for await (const record of records(stdout, separator)) {
      if (!onRecord(record)) return undefined;
    }
    const end = { exitCode: await ended, errors: await errors };
    signal.throwIfAborted();
    return end;
  } finally {
    signal.removeEventListener("abort", kill);
    kill();
    await ended.catch(() => undefined);
  }
}

async function* records(stream: AsyncIterable<Buffer>, separator: number): AsyncGenerator<Buffer> {
  let kept: Buffer[] = [];
  let bytes = 0;
  const keep = (piece: Buffer) => {
    if (bytes < maxRecordBytes) kept.push(piece.subarray(0, maxRecordBytes - bytes));
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
