// Authors of a document's lines across versions. Pure. A note has several authors: a line from untrusted content must not count as the
// owner's because the owner wrote the next line.
import { letterOf, linesOf, type DocumentAuthor, type LineAuthors } from "@parley/contracts";

/** Most trusted first. */
const trust: readonly DocumentAuthor[] = ["owner", "import", "agent", "untrusted"];

export interface Written {
  text: string;
  authors: LineAuthors;
}

/**
 * A line of the earlier version keeps its author, also at a new position, and one of unknown author is untrusted; all other lines get the new version's author. An unchanged text
 * by a more trusted author belongs to that author entirely, because a person marked it as trusted.
 */
export function lineAuthors(before: Written | undefined, text: string, author: DocumentAuthor): LineAuthors {
  const lines = linesOf(text);
  if (before === undefined || (before.text === text && author !== "untrusted" && author !== "agent"))
    return letterOf(author).repeat(lines.length);
  const known = new Map<string, string[]>();
  for (const [index, line] of linesOf(before.text).entries()) {
    const letter = before.authors[index] ?? letterOf("untrusted");
    const same = known.get(line);
    if (same === undefined) known.set(line, [letter]);
    else same.push(letter);
  }
  return lines.map((line) => known.get(line)?.shift() ?? letterOf(author)).join("");
}

/** The least trusted of several authors; `agent` for none. */
export function leastTrusted(authors: Iterable<DocumentAuthor>): DocumentAuthor {
  let least = -1;
  for (const author of authors) least = Math.max(least, trust.indexOf(author));
  return trust[least] ?? "agent";
}
