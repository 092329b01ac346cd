// Messages between the service and its search thread. Types only: the thread must start fast.

/** `content`: lines. `files`: file names. `count`: file names with their number of matching lines. */
export type GrepMode = "content" | "files" | "count";

export interface SearchJob {
  kind: "glob" | "grep";
  /** An open directory or file to search; it stays open during the search. Null to search documents only. */
  fd: number | null;
  isDirectory: boolean;
  /** Its host path, for systems without /proc/self/fd. */
  path: string;
  /** Its name in results; "" for the workspace folder. */
  prefix: string;
  /** glob: the pattern. grep: which files to search; null = all. */
  glob: string | null;
  /** grep: a regular expression. */
  pattern: string;
  ignoreCase: boolean;
  /** grep. Default `content`. */
  mode?: GrepMode;
  /** grep: lines shown before and after each hit. Default 0. */
  context?: number;
  /** Maximum number of hits; context lines do not count. */
  maxHits: number;
  /** Texts that are searched before the disk, at or below `prefix`. */
  documents: readonly SearchedDocument[];
  /** Names directly in the directory to skip. */
  hidden: readonly string[];
  /** Path patterns, relative to the workspace folder, to skip. */
  denied: readonly string[];
}

interface SearchedDocument {
  /** From the workspace folder. */
  path: string;
  /** Empty when only names are searched. */
  content: string;
}

export interface SearchHit {
  /** `path`, `path:line: text`, `path-line- text` for context, `--` between groups, or `path: number`. */
  shown: string;
  /** The line whose text is shown, numbered from 1; null if none. */
  line: { path: string; number: number } | null;
}

export type SearchAnswer =
  /** The job is invalid; `message` is for the model. */
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
