// What a search is asked and what it answers: the messages between the service and its search thread. Types only: the thread
// has to start fast.

/** `content`: lines. `files`: names of files. `count`: files with their number of lines that match. */
export type GrepMode = "content" | "files" | "count";

export interface SearchJob {
  kind: "glob" | "grep";
  /** An open directory or file to search; it stays open while the search runs. Null where only documents are searched. */
  fd: number | null;
  isDirectory: boolean;
  /** Its path on the machine, for systems without descriptors as paths. */
  path: string;
  /** How the result names it; "" for the workspace folder. */
  prefix: string;
  /** glob: the pattern. grep: which files to look into; null = all. */
  glob: string | null;
  /** grep: a regular expression. */
  pattern: string;
  ignoreCase: boolean;
  /** grep. Default `content`. */
  mode?: GrepMode;
  /** grep: lines shown before and after each hit. Default 0. */
  context?: number;
  /** Most hits; lines around them are none. */
  maxHits: number;
  /** Texts that are searched before the disk, at or below `prefix`. */
  documents: readonly SearchedDocument[];
  /** Names directly in the directory that are left out. */
  hidden: readonly string[];
  /** Patterns of paths, from the workspace folder, that are left out. */
  denied: readonly string[];
}

interface SearchedDocument {
  /** From the workspace folder. */
  path: string;
  /** Left empty where only names are looked at. */
  content: string;
}

export interface SearchHit {
  /** `path`, `path:line: text`, `path-line- text` beside a hit, `--` between them, or `path: number`. */
  shown: string;
  /** The line whose text is shown, by its number from 1; null where none is. */
  line: { path: string; number: number } | null;
}

export type SearchAnswer =
  /** The job itself is wrong; `message` is for the model. */
  | { status: "refused"; message: string }
  | {
      status: "found";
      hits: SearchHit[];
      /** There are more than were asked for. */
      truncated: boolean;
      filesSeen: number;
      /** Files and directories that could not be read. */
      unreadable: number;
    };
