// What a tool call does, from its arguments: a title, and the change of a file as a difference. Pure.

import { parseJson } from "@parley/kit";
import { structuredPatch } from "diff";
import { z } from "zod";

import { stripControl, summarizeInput } from "../tables/format.ts";

export interface CallView {
  /** The command, the path, the address. */
  readonly title: string;
  /** Lines of a difference, with `+`, `-` or a space in front; empty: the call changes no text that its arguments contain. */
  readonly diff: readonly string[];
}

/** The arguments that name the object of a call, most telling first. */
const titleFields = ["command", "path", "file_path", "url", "query", "pattern"];
const Fields = z.record(z.string(), z.unknown());

/** Describes a call from the JSON text of its arguments, which may be truncated or invalid. */
export function describeCall(input: string): CallView {
  const fields = Fields.safeParse(parseJson(input)).data;
  if (fields === undefined) return { title: stripControl(input), diff: [] };
  const diff = diffOf(fields);
  const named = titleFields.map((name) => textIn(fields, [name])).find((text) => text !== null);
  const title =
    diff.length > 0 || Object.keys(fields).length === 1 ? (named ?? summarizeInput(input)) : summarizeInput(input);
  return { title: stripControl(title), diff };
}

function diffOf(fields: Readonly<Record<string, unknown>>): string[] {
  const before = textIn(fields, ["old_text", "old_string", "old"]);
  const after = textIn(fields, ["new_text", "new_string", "new"]);
  if (before !== null && after !== null) return difference(before, after);
  const patch = textIn(fields, ["patch", "diff"]);
  if (patch !== null) return stripControl(patch).trimEnd().split("\n");
  const content = textIn(fields, ["content"]);
  return content !== null && textIn(fields, ["path", "file_path"]) !== null ? difference("", content) : [];
}

function difference(before: string, after: string): string[] {
  const ended = (text: string): string => (text === "" || text.endsWith("\n") ? text : `${text}\n`);
  const { hunks } = structuredPatch("", "", ended(stripControl(before)), ended(stripControl(after)), "", "", {
    context: 2,
  });
  return hunks.flatMap(({ lines }, index) => (index === 0 ? lines : ["…", ...lines]));
}

function textIn(fields: Readonly<Record<string, unknown>>, names: readonly string[]): string | null {
  for (const name of names) {
    const value = fields[name];
    if (typeof value === "string") return value;
  }
  return null;
}

/** The exit code that the result of a command reports; null: none. Pure. */
export function exitCodeOf(output: string): number | null {
  const found = /\[exit code (-?\d+)/.exec(output.slice(0, 300)) ?? /\[exit code (-?\d+)/.exec(output.slice(-300));
  return found?.[1] === undefined ? null : Number(found[1]);
}

/** The note about a result that was too long for the model; null: the model sees all of it. Pure. */
export function truncationOf(output: string): string | null {
  return /\[(Showing \d+ of \d+ characters from [^;\]]+)/.exec(output)?.[1] ?? null;
}
