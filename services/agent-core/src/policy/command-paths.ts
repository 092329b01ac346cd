// Extracts the paths in a command line for file rules. Paths that the command computes, and directories that it walks, stay unknown;
// only the sandbox reliably protects files from commands. Pure.
import { compileText } from "./pattern.ts";
import { parsePath, type ParsedPath } from "./paths.ts";
import { programOf } from "./shell-words.ts";
import type { ParsedCommand } from "./shell.ts";

export interface CommandPaths {
  /** Words that are paths if the program interprets them as paths. */
  named: readonly ParsedPath[];
  /** Possible paths: parts of words, and the names after `..`. */
  possible: readonly ParsedPath[];
  /** Partly known words, as path segments; null for a segment that is known only at run time. */
  unknown: readonly (readonly (string | null)[])[];
}

/** Programs that use no argument as a file. */
const speakers = new Set([
  "echo",
  "printf",
  "true",
  "false",
  ":",
  "exit",
  "return",
  "[[",
  "((",
  "export",
  "sleep",
  "kill",
]);
/** Characters that separate a path from the rest of a word: `if=a`, `@a`, `open('a')`. */
const separators = /[\s'"`()=@:,;<>|&{}$]+/;
/** Maximum number of parts checked per word. */
const maxPieces = 200;

/** `workdir`: the call's folder, relative to the workspace. `roots`: absolute paths of the workspace. */
export function commandPaths(command: ParsedCommand, workdir: unknown, roots: readonly string[] = []): CommandPaths {
  const folder = typeof workdir === "string" ? `${workdir}/` : "";
  const read = (text: string): ParsedPath => parsePath(text.startsWith("/") ? text : `${folder}${text}`, roots);
  const named: ParsedPath[] = typeof workdir === "string" ? [parsePath(workdir, roots)] : [];
  const possible: ParsedPath[] = [];
  const unknown: (string | null)[][] = [];
  for (const { words } of command.commands) {
    const silent = speakers.has(programOf(words) ?? "");
    for (const { value, literal } of words) {
      if (literal) named.push(read(value));
      else if (!silent) unknown.push(segments(value));
      const pieces = value.split(separators).slice(0, maxPieces);
      if (/^-[A-Za-z]./.test(value)) pieces.push(value.slice(2));
      for (const piece of pieces) {
        if (piece === "" || (literal && piece === value)) continue;
        possible.push(read(piece));
      }
      // After a change of folder the target of `..` is unknown.
      if (literal && value.includes("..")) possible.push(parsePath(value.replace(/^.*\.\.\/*/s, "")));
    }
  }
  return { named, possible, unknown };
}

function segments(text: string): (string | null)[] {
  const names = text.replace(/^\/workspace\//, "").split("/");
  return names
    .filter((name) => name !== "" && name !== ".")
    .map((name) => (/[*?[\]{}$`'"\\~]/.test(name) ? null : name));
}

/**
 * Whether a partly known path could match the pattern, or be a parent of a match. `names`: relative to the workspace, null if
 * unknown.
 */
export function couldBe(pattern: string, names: readonly (string | null)[]): boolean {
  const wanted = pattern
    .replace(/^\/workspace\//, "")
    .split("/")
    .filter((each) => each !== "" && each !== ".");
  let matched = 0;
  for (const [index, name] of names.entries()) {
    const segment = wanted[index];
    if (segment === undefined) return false;
    if (segment === "**") return names.slice(index).includes(null) || matched > 0;
    if (name !== null && !compileText(segment)(name)) return false;
    matched += 1;
  }
  return matched > 0;
}
