// What a tool call is about, from its arguments. Pure.
import { visible } from "./markdown.ts";

export interface CallView {
  /** One line: the command, the path, the address. */
  title: string;
  /** The arguments, formatted; null: the title says all. */
  details: string | null;
  /** A change of a text: shown as a difference. */
  change: { before: string; after: string } | null;
}

/** The arguments that name the object of a call, most telling first. */
const titleFields = [
  "question",
  "command",
  "cmd",
  "path",
  "file_path",
  "url",
  "query",
  "pattern",
  "text",
  "name",
  "prompt",
  "task",
];
const maxTitle = 160;

/** Describes a call from the JSON text of its arguments, which may be cut off or invalid. */
export function describeCall(input: string): CallView {
  const args = parseArguments(input);
  if (args === null) return { title: oneLine(input), details: input === "" ? null : visible(input), change: null };
  const field = titleFields.find((name) => typeof args[name] === "string" && args[name] !== "");
  const title = field === undefined ? oneLine(JSON.stringify(args)) : oneLine(String(args[field]));
  const change = changeOf(args);
  const others = Object.entries(args).filter(([name]) => name !== field || title.endsWith("…"));
  const details =
    others.length === 0 || change !== null ? null : visible(JSON.stringify(Object.fromEntries(others), null, 2));
  return { title: title === "{}" ? "" : title, details, change };
}

function parseArguments(input: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(input);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}

function changeOf(args: Record<string, unknown>): CallView["change"] {
  const before = firstText(args, ["old_string", "oldText", "old", "old_text", "find"]);
  const after = firstText(args, ["new_string", "newText", "new", "new_text", "replace"]);
  if (before !== null && after !== null) return { before, after };
  const edits = args["edits"];
  if (Array.isArray(edits)) {
    const each = edits.flatMap((edit: unknown) => {
      const change = typeof edit === "object" && edit !== null ? changeOf({ ...edit }) : null;
      return change === null ? [] : [change];
    });
    if (each.length > 0) {
      return { before: each.map((one) => one.before).join("\n"), after: each.map((one) => one.after).join("\n") };
    }
  }
  const content = firstText(args, ["content", "contents"]);
  return content !== null && typeof args["path"] === "string" ? { before: "", after: content } : null;
}

function firstText(args: Record<string, unknown>, names: readonly string[]): string | null {
  for (const name of names) if (typeof args[name] === "string") return args[name];
  return null;
}

function oneLine(text: string): string {
  const line = visible(text).replace(/\s+/g, " ").trim();
  return line.length > maxTitle ? `${line.slice(0, maxTitle)}…` : line;
}

/** Arguments that are cut off, as text to read: line ends are line ends, and quotes are quotes. */
export function readableInput(input: string): string {
  return input.replace(/\\(?:(["\\/])|([nt]))/g, (_, plain: string | undefined, control: string | undefined) =>
    control === undefined ? (plain ?? "") : control === "n" ? "\n" : "\t",
  );
}

/** The exit code that a command's result reports; null: none. */
export function exitCodeOf(output: string): number | null {
  const found = /\[exit code (-?\d+)/.exec(output.slice(0, 2_000)) ?? /\[exit code (-?\d+)/.exec(output.slice(-500));
  return found?.[1] === undefined ? null : Number(found[1]);
}
