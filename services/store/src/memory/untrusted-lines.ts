// Untrusted lines of a text, for use in prompts. Pure.
import { authorAt, linesOf, type LineAuthors, type LineRange } from "@parley/contracts";

/** Maximum ranges of one document, to limit the marks in a prompt and the size of a reply near the bus's limit. */
export const maxRanges = 100;

/**
 * The untrusted lines of a text. A blank line counts like the lines around it. Above `max` ranges, the last range extends to the last
 * untrusted line and includes trusted lines in between.
 */
export function untrustedRanges(content: string, authors: LineAuthors, max: number): LineRange[] {
  const ranges: LineRange[] = [];
  let isOpen = false;
  for (const [index, text] of linesOf(content).entries()) {
    if (text.trim() === "") continue;
    const isUntrusted = authorAt(authors, index) === "untrusted";
    const last = ranges.at(-1);
    if (isUntrusted && last !== undefined && (isOpen || ranges.length === max)) last.to = index + 1;
    else if (isUntrusted) ranges.push({ from: index + 1, to: index + 1 });
    isOpen = isUntrusted;
  }
  return ranges;
}
