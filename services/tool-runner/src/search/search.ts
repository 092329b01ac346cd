// Searches the workspace and documents by name or content. It does not know the tools or the wording of their results.
import { randomUUID } from "node:crypto";
import { open, rm, type FileHandle } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { grepArguments, listArguments, searchRules, type SearchQuery } from "./arguments.ts";
import { GrepHits, HitList, type SearchHit } from "./hits.ts";
import { runRipgrep, type Confine, type ProgramEnd, type ProgramOptions, type SearchPlace } from "./ripgrep.ts";

export interface SearchTarget extends SearchPlace {
  /** Its name in results; "" for the workspace folder. */
  prefix: string;
  /** Names directly in the directory to skip. */
  hidden: readonly string[];
}

interface Totals {
  filesSeen: number;
  /** Files and directories that could not be read, and files whose names are not UTF-8. */
  unreadable: number;
  /** Files with a hit after a NUL byte: each NUL byte counts as the end of a line. */
  withNul: number;
  /** Files above this size were left out, because a line of one is too long for the memory; undefined: none was. */
  maxFileBytes?: number;
}

/** The search that was not possible; for the model to correct. */
type Refusal =
  /** The pattern is invalid; `message` states why. */
  | { status: "refused"; message: string }
  /** The file has a line that is too long for the memory. */
  | { status: "line_too_long" };

export type SearchAnswer =
  | Refusal
  /** `truncated`: whether there are more hits than requested. */
  | (Totals & { status: "found"; hits: SearchHit[]; truncated: boolean });

/** Searches the targets in order. Rejects with the signal's reason. */
export type Searcher = (
  query: SearchQuery,
  targets: readonly SearchTarget[],
  signal: AbortSignal,
) => Promise<SearchAnswer>;

const defaultMaxMemoryBytes = 1024 * 1024 * 1024;
/** Of the memory: the size up to which any file fits, however long its lines are. Lines are held more than once. */
const fileShare = 1 / 8;

/**
 * `confine`: default: searches run outside a sandbox, from an open directory. `maxMemoryBytes`: address space of one search.
 * Throws (the searcher) when the search program fails.
 */
export function createSearcher(
  confine: Confine = () => undefined,
  maxMemoryBytes: number = defaultMaxMemoryBytes,
): Searcher {
  return async (query, targets, signal) => {
    const program = { confine, maxMemoryBytes, signal };
    const hits = new HitList(query.maxHits);
    const totals: Totals = { filesSeen: 0, unreadable: 0, withNul: 0 };
    for (const target of targets) {
      const search = new TargetSearch(query, target, hits, totals, program);
      const refusal = await (query.pattern === null ? search.list() : search.grep(query.pattern));
      if (refusal !== undefined) return refusal;
      if (hits.truncated) break;
    }
    return { status: "found", hits: hits.lines, truncated: hits.truncated, ...totals };
  };
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

class TargetSearch {
  readonly #query: SearchQuery;
  readonly #target: SearchTarget;
  readonly #hits: HitList;
  readonly #totals: Totals;
  readonly #program: ProgramOptions;

  constructor(query: SearchQuery, target: SearchTarget, hits: HitList, totals: Totals, program: ProgramOptions) {
    this.#query = query;
    this.#target = target;
    this.#hits = hits;
    this.#totals = totals;
    this.#program = program;
  }

  /** Adds the names of the files to the hits. */
  async list(): Promise<Refusal | undefined> {
    const end = await this.#list((found) => {
      const name = this.#nameOf(found);
      return name === undefined || this.#hits.add(name);
    }, this.#countError);
    return end === undefined ? undefined : listRefusal(end);
  }

  /** Adds the lines that match to the hits. */
  async grep(pattern: string): Promise<Refusal | undefined> {
    const denied: string[] = [];
    const { isDenied, glob } = this.#query;
    if (isDenied !== undefined && this.#target.file === undefined) {
      // Not even the time or the errors of a search may depend on the content of a denied file.
      const end = await this.#list((found) => {
        const path = relativeTo(found.toString("utf8"));
        if (isDenied(this.#pathOf(path))) denied.push(path);
        return true;
      });
      const refusal = end === undefined ? undefined : listRefusal(end);
      if (refusal !== undefined) return refusal;
    }
    await using rules = denied.length === 0 ? undefined : await openRules(searchRules(glob, denied));
    const before = { ...this.#totals };
    const mark = this.#hits.mark();
    const first = await this.#grep(pattern, rules?.file, undefined);
    if (first !== "out_of_memory") return first;
    if (this.#target.file !== undefined) return { status: "line_too_long" };
    this.#hits.reset(mark);
    Object.assign(this.#totals, before);
    const maxFileBytes = Math.floor(this.#program.maxMemoryBytes * fileShare);
    const second = await this.#grep(pattern, rules?.file, maxFileBytes);
    if (second === "out_of_memory") throw new Error("the search program ran out of memory");
    this.#totals.maxFileBytes = maxFileBytes;
    return second;
  }

  async #grep(
    pattern: string,
    rules: FileHandle | undefined,
    maxFileBytes: number | undefined,
  ): Promise<Refusal | "out_of_memory" | undefined> {
    const { mode = "content", context = 0 } = this.#query;
    const grep = new GrepHits({ mode, context, hits: this.#hits, nameOf: (found) => this.#nameOf(found) });
    const limits = { rules: rules !== undefined, maxFileBytes };
    const end = await runRipgrep(
      {
        args: grepArguments(this.#query, pattern, this.#target.hidden, limits),
        place: this.#target,
        input: rules,
        separator: 10,
        onRecord: (record) => grep.take(record),
        onError: this.#countError,
      },
      this.#program,
    );
    if (end !== undefined && grep.searched === undefined) {
      if (isOutOfMemory(end)) return "out_of_memory";
      if (end.exitCode === refusedExit && end.errors.startsWith("rg: ")) return refusal(end);
      throw failed(end);
    }
    if (end !== undefined) requireSuccess(end);
    this.#totals.filesSeen += grep.searched ?? 0;
    this.#totals.unreadable += grep.tooLong;
    this.#totals.withNul += grep.withNul;
    return undefined;
  }

  #list(
    onName: (found: Buffer) => boolean,
    onError: (line: string) => void = () => undefined,
  ): Promise<ProgramEnd | undefined> {
    const args = listArguments(this.#query, this.#target.hidden);
    return runRipgrep({ args, place: this.#target, separator: 0, onRecord: onName, onError }, this.#program);
  }

  /** The name in results; undefined for a denied file, and for one that cannot be named: it counts as unreadable. */
  #nameOf(found: Buffer): string | undefined {
    if (this.#target.file !== undefined) return this.#target.prefix;
    if (this.#query.isDenied?.(this.#pathOf(relativeTo(found.toString("utf8")))) === true) return undefined;
    try {
      return this.#pathOf(relativeTo(utf8.decode(found)));
    } catch {
      this.#totals.unreadable += 1;
      return undefined;
    }
  }

  #pathOf(relative: string): string {
    const { prefix } = this.#target;
    return prefix === "" ? relative : `${prefix}/${relative}`;
  }

  /** Counts `rg: path: cause`, unless the path is denied. */
  #countError = (line: string): void => {
    if (!line.startsWith("rg: ")) return;
    const text = line.slice("rg: ".length);
    const { isDenied } = this.#query;
    if (isDenied !== undefined && this.#target.file === undefined) {
      for (let end = text.indexOf(": "); end >= 0; end = text.indexOf(": ", end + 1)) {
        if (isDenied(this.#pathOf(relativeTo(text.slice(0, end))))) return;
      }
    }
    this.#totals.unreadable += 1;
  };
}

function relativeTo(found: string): string {
  return found.replace(/^\.\//, "");
}

/** The rules in a file that is open for the program and has no name. */
async function openRules(text: string): Promise<{ file: FileHandle } & AsyncDisposable> {
  const path = join(tmpdir(), `parley-rules-${randomUUID()}`);
  const written = await open(path, "wx", 0o600);
  try {
    await written.writeFile(text);
    const file = await open(path, "r");
    return { file, [Symbol.asyncDispose]: () => file.close() };
  } finally {
    await written.close();
    await rm(path);
  }
}

/** The program's exit code for an invalid argument, and for files that could not be read. */
const refusedExit = 2;

/** Throws unless it has searched all it could: 0 = with hits, 1 = without. */
function requireSuccess(end: ProgramEnd): void {
  if (end.exitCode === null || end.exitCode > refusedExit) throw failed(end);
  if (end.errors !== "" && !end.errors.startsWith("rg: ")) throw failed(end);
}

function failed({ exitCode, errors }: ProgramEnd): Error {
  return new Error(`the search program failed (${exitCode ?? "killed"}): ${errors.slice(0, 500)}`);
}

function listRefusal(end: ProgramEnd): Refusal | undefined {
  if (end.exitCode === refusedExit && end.errors.startsWith("rg: error parsing glob")) return refusal(end);
  requireSuccess(end);
  return undefined;
}

/** The last line states the cause; the lines before repeat the pattern. */
function refusal({ lastError }: ProgramEnd): Refusal {
  return { status: "refused", message: lastError.trim().replace(/^(rg|error): /, "") };
}

function isOutOfMemory({ lastError }: ProgramEnd): boolean {
  return /^memory allocation of \d+ bytes failed/.test(lastError);
}
