// An edit of MEMORY.md by line numbers, carried out or refused. Pure.
import { authorAt, linesOf } from "@parley/contracts";
import type { Written } from "./authors.ts";

interface LineEdit {
  /** From 1, inclusive. */
  remove: readonly { from: number; to: number }[];
  /** Behind a line of the text as it was; 0: at the beginning. */
  add: readonly { after: number; text: string }[];
  /** What is longer afterwards must at least be shorter than before. */
  maxChars: number;
}

/**
 * The text with an edit, or why it cannot be. Lines that outsiders had a hand in are no business of whoever has not seen them:
 * they stay.
 */
export function editLines(
  before: Written,
  { remove, add, maxChars }: LineEdit,
): { text: string } | { problem: string } {
  const lines = linesOf(before.text);
  const gone = new Set<number>();
  for (const { from, to } of remove) {
    if (from > to || to > lines.length) return { problem: `there are no lines ${from} to ${to}` };
    for (let number = from; number <= to; number++) {
      if (authorAt(before.authors, number - 1) === "untrusted" && lines[number - 1]?.trim() !== "")
        return { problem: `line ${number} was withheld, and stays` };
      gone.add(number);
    }
  }
  const added = new Map<number, string[]>();
  for (const { after, text } of add) {
    if (after > lines.length) return { problem: `there is no line ${after}` };
    added.set(after, [...(added.get(after) ?? []), ...linesOf(text)]);
  }
  const result = [
    ...(added.get(0) ?? []),
    ...lines.flatMap((line, index) => [...(gone.has(index + 1) ? [] : [line]), ...(added.get(index + 1) ?? [])]),
  ];
  const text = result.map((line) => `${line}\n`).join("");
  if (text.length > maxChars && text.length >= before.text.length)
    return { problem: `MEMORY.md would have ${text.length} characters; it may have ${maxChars}` };
  return { text };
}
