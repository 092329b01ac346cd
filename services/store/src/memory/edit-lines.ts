// Applies or refuses an edit of MEMORY.md by line numbers. Pure.
import { authorAt, linesOf } from "@parley/contracts";
import type { Written } from "./authors.ts";

interface LineEdit {
  /** From 1, inclusive. */
  remove: readonly { from: number; to: number }[];
  /** After a line of the original text; 0: at the beginning. */
  add: readonly { after: number; text: string }[];
  /** Maximum length; a longer result is accepted only if it is shorter than before. */
  maxChars: number;
}

/**
 * Returns the edited text or the problem. Untrusted lines cannot be removed, because the model has not received them.
 */
export function editLines(
  before: Written,
  { remove, add, maxChars }: LineEdit,
): { text: string } | { problem: string } {
  const lines = linesOf(before.text);
  const removed = new Set<number>();
  for (const { from, to } of remove) {
    if (from > to || to > lines.length) return { problem: `lines ${from} to ${to} do not exist` };
    for (let number = from; number <= to; number++) {
      if (authorAt(before.authors, number - 1) === "untrusted" && lines[number - 1]?.trim() !== "")
        return { problem: `line ${number} was withheld and cannot be removed` };
      removed.add(number);
    }
  }
  const added = new Map<number, string[]>();
  for (const { after, text } of add) {
    if (after > lines.length) return { problem: `line ${after} does not exist` };
    added.set(after, [...(added.get(after) ?? []), ...linesOf(text)]);
  }
  const result = [
    ...(added.get(0) ?? []),
    ...lines.flatMap((line, index) => [...(removed.has(index + 1) ? [] : [line]), ...(added.get(index + 1) ?? [])]),
  ];
  const text = result.map((line) => `${line}\n`).join("");
  if (text.length > maxChars && text.length >= before.text.length)
    return { problem: `MEMORY.md would have ${text.length} characters; the limit is ${maxChars}` };
  return { text };
}
