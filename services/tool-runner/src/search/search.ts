// Searches the workspace and documents by name or content. It does not know the tools or the wording of their results.
import { GrepHits, HitList, type GrepMode, type SearchHit } from "./hits.ts";
import { runRipgrep, type Confine, type SearchPlace } from "./ripgrep.ts";

export interface SearchQuery {
  /** Which files to search, by name; null = all. A pattern without `/` matches in any directory. */
  glob: string | null;
  /** A regular expression; null: the names of the files are the hits. */
  pattern: string | null;
  ignoreCase?: boolean;
  /** Default `content`. */
  mode?: GrepMode;
  /** Lines shown before and after each hit. Default 0. */
  context?: number;
  /** Maximum number of hits; context lines do not count. */
  maxHits: number;
  /** Whether a path, relative to the workspace folder, must not be shown. */
  isDenied: (path: string) => boolean;
}

export interface SearchTarget extends SearchPlace {
  /** Its name in results; "" for the workspace folder. */
  prefix: string;
  /** Names directly in the directory to skip. */
  hidden: readonly string[];
}

export type SearchAnswer =
  /** The pattern is invalid; `message` is for the model. */
  | { status: "refused"; message: string }
  | {
      status: "found";
      hits: SearchHit[];
      /** Whether there are more hits than requested. */
      truncated: boolean;
      filesSeen: number;
      /** Files and directories that could not be read. */
      unreadable: number;
    };

/** Searches the targets in order. Rejects with the signal's reason. */
export type Searcher = (
  query: SearchQuery,
  targets: readonly SearchTarget[],
  signal: AbortSignal,
) => Promise<SearchAnswer>;

/** Directories with generated content. A search that starts inside one does search it. */
const skippedDirectories = [".git", ".parley", "node_modules"];
const maxDepth = 64;
/** The program's exit code for an invalid argument, and for files that could not be read. */
const failedExit = 2;

/** `confine`: default: searches run outside a sandbox, from an open directory. */
export function createSearcher(confine: Confine = () => undefined): Searcher {
  return async (query, targets, signal) => {
    const hits = new HitList(query.maxHits);
    let filesSeen = 0;
    let unreadable = 0;
    for (const target of targets) {
      const isList = query.pattern === null;
      const nameOf = (found: string) => {
        const path = nameIn(target, found);
        return query.isDenied(path) ? undefined : path;
      };
      const grep = new GrepHits({ mode: query.mode ?? "content", context: query.context ?? 0, hits, nameOf });
      const list = (record: Buffer) => {
        const name = nameOf(record.toString("utf8"));
        return name === undefined || hits.add(name);
      };
      const take = isList ? list : (record: Buffer) => grep.take(record);
      const end = await runRipgrep(argumentsFor(query, target), target, isList ? 0 : 10, confine, take, signal);
      if (end === undefined) break;
      const { exitCode, errors } = end;
      const isRefused = isList ? errors.startsWith("rg: error parsing glob") : grep.searched === undefined;
      if (exitCode === failedExit && isRefused) return { status: "refused", message: lastLine(errors) };
      if (exitCode === null || (errors !== "" && !errors.startsWith("rg: "))) {
        throw new Error(`the search program failed (${exitCode ?? "killed"}): ${errors.slice(0, 500)}`);
      }
      filesSeen += grep.searched ?? 0;
      unreadable += grep.tooLong + (errors.match(/^rg: /gm)?.length ?? 0);
    }
    return { status: "found", hits: hits.lines, truncated: hits.truncated, filesSeen, unreadable };
  };
}

function argumentsFor(
  { glob, pattern, ignoreCase, mode, context = 0 }: SearchQuery,
  { hidden }: SearchTarget,
): string[] {
  const args = ["--no-config", "--no-ignore", "--hidden", "--no-mmap", "--sort=path", `--max-depth=${maxDepth}`];
  if (glob !== null) args.push("--glob", globArgument(glob));
  // Of several patterns, the last one that matches a path decides.
  for (const name of skippedDirectories) args.push("--glob", `!${name}/`);
  for (const name of hidden) args.push("--glob", `!/${name}`);
  if (pattern === null) return [...args, "--files", "--null"];
  // Look-around is matched by PCRE2, everything else in linear time.
  args.push("--json", "--crlf", "--engine=auto", `--context=${context}`);
  if (ignoreCase === true) args.push("--ignore-case");
  if (mode === "files") args.push("--max-count=1");
  return [...args, "--regexp", pattern, "--"];
}

/** A leading `!` or `#` and an unclosed `[` stand for themselves. */
function globArgument(glob: string): string {
  return glob
    .replace(/^\.\//, "")
    .replace(/^[!#]/, "\\$&")
    .replaceAll(/\[(?![^\]]*\])/g, "\\[");
}

function nameIn({ file, prefix }: SearchTarget, found: string): string {
  if (file !== undefined) return prefix;
  const relative = found.replace(/^\.\//, "");
  return prefix === "" ? relative : `${prefix}/${relative}`;
}

/** The last line states the cause; the lines before repeat the pattern. */
function lastLine(errors: string): string {
  return (errors.trim().split("\n").at(-1) ?? "").replace(/^(rg|error): /, "");
}
