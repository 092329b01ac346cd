// The search thread: runs jobs one at a time. A pattern with catastrophic backtracking blocks only this thread; the pool terminates it.
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { parentPort } from "node:worker_threads";
import { compileGlob, PatternError, type PathMatcher } from "./glob.ts";
import { FileHits, HitList, type Step } from "./file-hits.ts";
import type { SearchAnswer, SearchJob } from "./job.ts";
import type { IsDenied } from "../workspace/denied.ts";
import { below, walkFiles, type WalkCounts } from "./walk.ts";

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
const chunkBytes = 256 * 1024;
/** Of a longer line, only the beginning is searched. */
const maxLineBytes = 1024 * 1024;

function search(job: SearchJob, isDenied: IsDenied): SearchAnswer {
  let matches: PathMatcher;
  let pattern: RegExp;
  try {
    matches = job.glob === null ? () => true : compileGlob(job.glob);
    pattern = compile(job.pattern, job.ignoreCase ? "i" : "");
  } catch (error) {
    if (error instanceof PatternError || error instanceof SyntaxError)
      return { status: "refused", message: error.message };
    throw error;
  }
  const hits = new HitList(job.maxHits);
  const counts: WalkCounts = { unreadable: 0 };
  let filesSeen = 0;
  const inFile = (name: string) =>
    new FileHits({ name, pattern, mode: job.mode ?? "content", context: job.context ?? 0, hits });
  const named = (relative: string) => (job.prefix === "" ? relative : `${job.prefix}/${relative}`);

  for (const { path, content } of job.documents) {
    if (isDenied(path)) continue;
    const relative = job.prefix === "" ? path : path.slice(job.prefix.length + 1);
    if (job.isDirectory && !matches(relative)) continue;
    filesSeen += 1;
    if (!(job.kind === "glob" ? hits.add(path) : grepText(content, inFile(path)))) break;
  }
  if (job.fd === null || hits.truncated) {
    // Nothing else to search, or enough hits found.
  } else if (!job.isDirectory) {
    filesSeen = 1;
    grepFile(job.fd, inFile(job.prefix));
  } else {
    for (const file of walkFiles({ fd: job.fd, path: job.path }, counts, { hidden: new Set(job.hidden) })) {
      if (!matches(file.relative) || isDenied(named(file.relative))) continue;
      filesSeen += 1;
      if (job.kind === "glob") {
        if (!hits.add(named(file.relative))) break;
        continue;
      }
      let fd: number;
      try {
        fd = openSync(below(file.directory, file.name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      } catch {
        counts.unreadable += 1;
        continue;
      }
      try {
        if (fstatSync(fd).isFile() && !grepFile(fd, inFile(named(file.relative)))) break;
      } finally {
        closeSync(fd);
      }
    }
  }
  const { lines, truncated } = hits;
  return { status: "found", hits: lines, truncated, filesSeen, unreadable: counts.unreadable };
}

/** Unicode-aware if the pattern permits; the older syntax allows needless escapes such as `\-`. */
function compile(pattern: string, flags: string): RegExp {
  try {
    return new RegExp(pattern, `${flags}u`);
  } catch {
    return new RegExp(pattern, flags);
  }
}

/** False when the search has enough hits. Binary files are skipped. */
function grepFile(fd: number, file: FileHits): boolean {
  const buffer = Buffer.alloc(chunkBytes);
  let position = 0;
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  const keep = (piece: Buffer) => {
    if (pendingBytes >= maxLineBytes || piece.length === 0) return;
    pending.push(Buffer.from(piece));
    pendingBytes += piece.length;
  };
  const endLine = (): Step => {
    const line = Buffer.concat(pending).toString("utf8").replace(/\r$/, "");
    pending = [];
    pendingBytes = 0;
    return file.line(line);
  };
  for (;;) {
    const bytes = readSync(fd, buffer, 0, chunkBytes, position);
    if (bytes === 0) {
      const last = pendingBytes === 0 ? "more" : endLine();
      return last === "more" ? file.end() !== "enough" : last === "next file";
    }
    const chunk = buffer.subarray(0, bytes);
    if (position === 0 && chunk.subarray(0, 8_192).includes(0)) return true;
    position += bytes;
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      keep(chunk.subarray(start, end));
      const step = endLine();
      if (step !== "more") return step === "next file";
      start = end + 1;
    }
    keep(chunk.subarray(start));
  }
}

/** Like `grepFile`, for a text in memory. */
function grepText(text: string, file: FileHits): boolean {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  for (const line of lines) {
    const step = file.line(line.replace(/\r$/, ""));
    if (step !== "more") return step === "next file";
  }
  return file.end() !== "enough";
}

/** Loads the pattern module only when needed: most jobs have no denied paths. */
async function deniedIn(job: SearchJob): Promise<IsDenied> {
  if (job.denied.length === 0) return () => false;
  const { deniedBy } = await import("../workspace/denied.ts");
  return deniedBy(job.denied);
}

parentPort?.on("message", (job: SearchJob) => {
  void deniedIn(job).then((isDenied) => parentPort?.postMessage(search(job, isDenied)));
});
