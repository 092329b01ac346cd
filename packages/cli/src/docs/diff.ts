// Two versions of a document beside each other. Pure.

import type { DocumentMeta } from "@parley/contracts";
import { createTwoFilesPatch, FILE_HEADERS_ONLY } from "diff";

import type { Format, Paint } from "../io.ts";

/** A version with its text; null: before the first one. */
export type Side = (DocumentMeta & { content: string }) | null;

/** How long the comparison may take: two long texts without a line in common take a time that grows with the square of their length. */
const timeoutMs = 5_000;

/** Which versions are meant: `from` 0 is the time before the first one. */
export function versionsOf(
  given: { from: number | undefined; to: number | undefined },
  newest: number,
): { from: number; to: number } {
  const to = given.to ?? newest;
  return { from: given.from ?? to - 1, to };
}

/** A unified diff; "" where the texts are the same, null where they are too different to be compared in time. */
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

/** What is not there is named as `diff` and `git` name it. */
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
