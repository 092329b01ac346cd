// The arguments and rules that tell ripgrep which files to search, and for what. Pure.
import type { GrepMode } from "./hits.ts";

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
  /** Whether a path, relative to the workspace folder, must not be searched or shown; omitted: none. */
  isDenied?: ((path: string) => boolean) | undefined;
}

/** Directories with generated content. A search that starts inside one does search it. */
const skippedDirectories = [".git", ".parley", "node_modules"];
const maxDepth = 64;

function filterArguments(glob: string | null, hidden: readonly string[]): string[] {
  const args = ["--no-config", "--no-ignore", "--hidden", "--no-mmap", "--sort=path", `--max-depth=${maxDepth}`];
  if (glob !== null) args.push("--glob", globArgument(glob));
  // Of several patterns, the last one that matches a path decides.
  for (const name of skippedDirectories) args.push("--glob", `!${name}/`);
  for (const name of hidden) args.push("--glob", `!/${name}`);
  return args;
}

/** Lists the names of files, each followed by a NUL byte. `hidden`: names directly in the directory to skip. */
export function listArguments({ glob }: Pick<SearchQuery, "glob">, hidden: readonly string[]): string[] {
  return [...filterArguments(glob, hidden), "--files", "--null"];
}

/** Where rules in the program's standard input replace the query's glob, and the size of the largest file to search. */
interface GrepLimits {
  rules: boolean;
  maxFileBytes: number | undefined;
}

/** Prints matching lines as JSON. */
export function grepArguments(
  { glob, ignoreCase, mode, context = 0, maxHits }: SearchQuery,
  pattern: string,
  hidden: readonly string[],
  { rules, maxFileBytes }: GrepLimits,
): string[] {
  const args = filterArguments(rules ? null : glob, hidden);
  if (rules) args.push("--ignore-file=/dev/stdin");
  // Look-around is matched by PCRE2, everything else in linear time. A NUL byte does not end the search of a file.
  args.push("--json", "--crlf", "--binary", "--engine=auto", `--context=${context}`);
  if (ignoreCase === true) args.push("--ignore-case");
  // One more line than is shown tells whether there are more.
  if (mode !== "count") args.push(`--max-count=${mode === "files" ? 1 : maxHits + 1}`);
  if (maxFileBytes !== undefined) args.push(`--max-filesize=${maxFileBytes}`);
  return [...args, "--regexp", pattern, "--"];
}

/** Rules in the syntax of .gitignore: only files that match `glob`, without the `excluded` ones (paths relative to the directory). */
export function searchRules(glob: string | null, excluded: readonly string[]): string {
  const wanted = glob === null ? [] : ["*", "!*/", `!${globArgument(glob).replaceAll("\n", "?")}`];
  return [...wanted, ...excluded.map((path) => `/${literalRule(path)}`), ""].join("\n");
}

/** Blanks and other characters that cannot be written in a rule become `*`. */
function literalRule(path: string): string {
  return path.replaceAll(/[^\p{L}\p{N}/]/gu, (character) =>
    character !== " " && /[\s\u0085\uFEFF\uFFFD]/.test(character) ? "*" : `\\${character}`,
  );
}

/** Escapes what is no valid part of a glob, a leading `!` or `#`, and trailing blanks. */
function globArgument(glob: string): string {
  const parts: string[] = [];
  const openBraces: number[] = [];
  const text = glob.replace(/^\.\//, "");
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at);
    const end = character === "[" ? classEnd(text, at) : -1;
    if (character === "\\") {
      parts.push(`\\${text.charAt(at + 1) || "\\"}`);
      at += 1;
    } else if (end > 0) {
      parts.push(text.slice(at, end + 1));
      at = end;
    } else if (character === "[" || (character === "}" && openBraces.pop() === undefined)) {
      parts.push(`\\${character}`);
    } else {
      if (character === "{") openBraces.push(parts.length);
      parts.push(character);
    }
  }
  for (const at of openBraces) parts[at] = "\\{";
  return parts
    .join("")
    .replace(/^[!#]/, "\\$&")
    .replace(/(?<!\\) $/, "\\ ")
    .replace(/[\t\n\v\f\r]$/, "[$&]");
}

/** The position of the `]` that ends the class at `start`; negative when none does. A `]` in the first place is a member. */
function classEnd(text: string, start: number): number {
  const first = "!^".includes(text.charAt(start + 1) || "x") ? start + 2 : start + 1;
  return text.indexOf("]", first + 1);
}
