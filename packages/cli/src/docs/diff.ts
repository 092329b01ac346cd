// Compares two versions of a document. Pure.

import type { DocumentMeta } from "@parley/contracts";
import { createTwoFilesPatch, FILE_HEADERS_ONLY } from "diff";

import type { Format, Paint } from "../io/io.ts";

/** A version with its text; null: the state before the first version. */
export type Side = (DocumentMeta & { content: string }) | null;

/** Time limit of a comparison, which takes quadratic time for long texts without common lines. */
const timeoutMs = 5_000;

/** The versions to compare; `from` 0 is the state before the first version. */
export function versionsOf(
  given: { from: number | undefined; to: number | undefined },
  newest: number,
): { from: number; to: number } {
  const to = given.to ?? newest;
  return { from: given.from ?? to - 1, to };
}

/** A unified diff; "" for equal texts, null if the comparison exceeds its time limit. */
export function unifiedDiff(path: string, from: Side, to: Side): string | null {
  const [before, after] = [from?.content ?? "", to?.content ?? ""];
  if (before === after) return "";
  const patch = createTwoFilesPatch(nameOf(path, from), nameOf(path, to), before, after, headOf(from), headOf(to), {
    context: 3,
    timeout: timeoutMs,
    headerOptions: FILE_HEADERS_ONLY,
  });
  return patch ?? null;
}

/** A unified diff of two texts; "" for equal texts. */
export function unifiedText(name: string, before: string, after: string): string {
  if (before === after) return "";
  return createTwoFilesPatch(name, name, before, after, "recorded", "replayed", {
    context: 3,
    headerOptions: FILE_HEADERS_ONLY,
  });
}

/** A missing side has the same name as in `diff` and `git`. */
function nameOf(path: string, side: Side): string {
  return side === null || side.deleted ? "/dev/null" : path;
}

function headOf(side: Side): string {
  if (side === null) return "no version";
  return `version ${side.version}${side.deleted ? " (removed)" : ""}, ${side.author}, ${side.createdAt}`;
}

/** Colours the lines of a unified diff. */
export function paintDiff(patch: string, paint: Paint): string {
  const lines = patch.split("\n");
  const body = lines.findIndex((line) => line.startsWith("@@"));
  return lines.map((line, at) => paintLine(line, at < body, paint)).join("\n");
}

const formats: Readonly<Record<string, Format>> = { "+": "green", "-": "red", "@": "cyan" };

function paintLine(line: string, isHead: boolean, paint: Paint): string {
  const format = isHead ? "bold" : formats[line.charAt(0)];
  return format === undefined ? line : paint(format, line);
}
