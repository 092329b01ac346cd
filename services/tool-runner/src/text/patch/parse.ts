// Parses a patch into operations on files. Pure; `apply.ts` decides whether they apply.
//
//   *** Begin Patch
//   *** Add File: <path>            then lines that begin with +
//   *** Delete File: <path>
//   *** Update File: <path>         then hunks; *** Move to: <path> may come before them
//   *** Move File: <path>           the same, for files that only move
//   @@ <a line above the change>    begins a hunk; then lines that begin with a space, - or +
//   *** End of File                 the hunk ends where the file ends
//   *** End Patch

interface HunkLine {
  kind: "keep" | "remove" | "add";
  text: string;
}

export interface Hunk {
  /** Line of the patch where the hunk begins, from 1. */
  at: number;
  /** A line above the change; "" when the patch names none. */
  below: string;
  lines: HunkLine[];
  /** The last line of the hunk is the last line of the file. */
  atEnd: boolean;
}

export type PatchOperation =
  | { kind: "add"; path: string; content: string }
  | { kind: "delete"; path: string }
  /** `to`: the new path of a moved file; undefined otherwise. */
  | { kind: "update"; path: string; to: string | undefined; hunks: Hunk[] };

/** A patch that is invalid or does not apply; the message is for the model. */
export class PatchError extends Error {
  override readonly name = "PatchError";
}

const header = /^\*\*\* (Add|Delete|Update|Move) File: (.+)$/;
const marks = { " ": "keep", "-": "remove", "+": "add" } as const;

/** Throws PatchError, which names the line of the patch. */
export function parsePatch(text: string): PatchOperation[] {
  const reader = new Reader(text);
  if (reader.next()?.trim() !== "*** Begin Patch") throw reader.wrong("A patch must begin with `*** Begin Patch`.");
  const operations: PatchOperation[] = [];
  for (;;) {
    const line = reader.next();
    if (line === undefined) throw reader.wrong("A patch must end with `*** End Patch`.");
    if (line.trim() === "*** End Patch") break;
    const found = header.exec(line.trimEnd());
    const path = found?.[2]?.trim() ?? "";
    if (found === null || path === "") {
      throw reader.wrong("Expected `*** Add File: `, `*** Update File: `, `*** Delete File: ` or `*** End Patch`.");
    }
    if (found[1] === "Add") operations.push({ kind: "add", path, content: addedText(reader) });
    else if (found[1] === "Delete") operations.push({ kind: "delete", path });
    else operations.push(update(reader, path, found[1] === "Move"));
  }
  if (operations.length === 0) throw reader.wrong("The patch changes nothing.");
  return operations;
}

class Reader {
  readonly #lines: string[];
  /** Number of the last line read, from 1. */
  at = 0;

  constructor(text: string) {
    this.#lines = text
      .replace(/^\s*\n/, "")
      .trimEnd()
      .split(/\r?\n/);
  }

  next(): string | undefined {
    const line = this.#lines[this.at];
    this.at += 1;
    return line;
  }

  peek(): string | undefined {
    return this.#lines[this.at];
  }

  wrong(what: string): PatchError {
    const line = this.#lines[this.at - 1];
    const shown = line === undefined ? "at its end" : `at line ${this.at} (${JSON.stringify(line.slice(0, 120))})`;
    return new PatchError(`The patch is invalid ${shown}. ${what}`);
  }
}

function addedText(reader: Reader): string {
  const lines: string[] = [];
  for (let line = reader.peek(); line?.startsWith("+") === true; line = reader.peek()) {
    lines.push(line.slice(1));
    reader.next();
  }
  return lines.length === 0 ? "" : `${lines.join("\n")}\n`;
}

function update(reader: Reader, path: string, mustMove: boolean): PatchOperation {
  const to = /^\*\*\* Move to: (.+)$/.exec(reader.peek()?.trimEnd() ?? "")?.[1]?.trim();
  if (to !== undefined) reader.next();
  else if (mustMove) throw reader.wrong("`*** Move File: ` must be followed by `*** Move to: `.");
  const hunks: Hunk[] = [];
  for (let line = reader.peek(); line !== undefined && !isOutside(line); line = reader.peek()) hunks.push(hunk(reader));
  if (hunks.length === 0 && to === undefined)
    throw reader.wrong("An update needs at least one hunk or `*** Move to: `.");
  return { kind: "update", path, to, hunks };
}

function hunk(reader: Reader): Hunk {
  const at = reader.at + 1;
  const begin = reader.peek() ?? "";
  const named = begin.startsWith("@@");
  if (named) reader.next();
  // Accepts the unified diff form `@@ -1,4 +1,5 @@ function f() {`; the numbers are ignored.
  const below = named
    ? begin
        .slice(2)
        .replace(/^ -\d+(,\d+)? \+\d+(,\d+)? @@/, "")
        .trim()
    : "";
  const lines: HunkLine[] = [];
  let atEnd = false;
  for (
    let line = reader.peek();
    line !== undefined && !isOutside(line) && !line.startsWith("@@");
    line = reader.peek()
  ) {
    reader.next();
    if (line.trim() === "*** End of File") {
      atEnd = true;
      break;
    }
    // Models often omit the space of a blank context line.
    const mark = line === "" ? " " : line.charAt(0);
    if (mark !== " " && mark !== "-" && mark !== "+") {
      throw reader.wrong("Each line of a hunk must begin with a space (keep), - (remove) or + (add).");
    }
    lines.push({ kind: marks[mark], text: line.slice(1) });
  }
  if (lines.length === 0) throw reader.wrong("The hunk is empty.");
  return { at, below, lines, atEnd };
}

function isOutside(line: string): boolean {
  return line.startsWith("*** ") && line.trim() !== "*** End of File";
}
