// The paths that a command line names, as far as its words show them: rules about files are compared with them. Names that
// the command computes, and directories it walks, stay unknown: what keeps files from a command is the sandbox. Pure.
import { compileText } from "./glob.ts";
import { readPath, type PathReading } from "./paths.ts";
import { programOf } from "./shell-words.ts";
import type { CommandReading } from "./shell.ts";

export interface CommandPaths {
  /** Words that are paths, if the program takes them as paths. */
  named: readonly PathReading[];
  /** What may be a path: parts of words, and the names behind `..`. */
  possible: readonly PathReading[];
  /** Words of which only a part is known; each as its segments, null for what only the run shows. */
  unknown: readonly (readonly (string | null)[])[];
}

/** They use no argument as a file. */
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
/** What separates a path from the rest of a word: `if=a`, `@a`, `open('a')`. */
const separators = /[\s'"`()=@:,;<>|&{}$]+/;
/** Parts of one word that are looked at. */
const maxPieces = 200;

/** `workdir`: the call's own folder, from the workspace. `roots`: absolute folders that mean the workspace. */
export function commandPaths(reading: CommandReading, workdir: unknown, roots: readonly string[] = []): CommandPaths {
  const folder = typeof workdir === "string" ? `${workdir}/` : "";
  const read = (text: string): PathReading => readPath(text.startsWith("/") ? text : `${folder}${text}`, roots);
  const named: PathReading[] = typeof workdir === "string" ? [readPath(workdir, roots)] : [];
  const possible: PathReading[] = [];
  const unknown: (string | null)[][] = [];
  for (const { words } of reading.commands) {
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
      // After a change of folder nobody knows where `..` leads.
      if (literal && value.includes("..")) possible.push(readPath(value.replace(/^.*\.\.\/*/s, "")));
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
 * Whether a path of which only some names are known could be, or lead to, a path of the pattern. Names: from the workspace
 * down, null for an unknown one.
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
