// The difference of two texts, line by line. Pure.
import { diffLines } from "diff/lib/diff/line.js";

export interface DiffLine {
  kind: "same" | "added" | "removed" | "skipped";
  text: string;
}

/** The changed lines with `context` lines around them. */
export function lineDiff(before: string, after: string, context = 3): DiffLine[] {
  const all = diffLines(before, after).flatMap(({ added, removed, value }): DiffLine[] => {
    const kind = added ? "added" : removed ? "removed" : "same";
    return value
      .replace(/\n$/, "")
      .split("\n")
      .map((text) => ({ kind, text }));
  });
  const near = new Set<number>();
  all.forEach(({ kind }, index) => {
    if (kind === "same") return;
    for (let at = index - context; at <= index + context; at++) near.add(at);
  });
  const lines: DiffLine[] = [];
  let skipped = 0;
  all.forEach((line, index) => {
    if (near.has(index)) {
      if (skipped > 0) lines.push({ kind: "skipped", text: `${skipped} unchanged lines` });
      skipped = 0;
      lines.push(line);
    } else skipped++;
  });
  if (skipped > 0 && lines.length > 0) lines.push({ kind: "skipped", text: `${skipped} unchanged lines` });
  return lines;
}
