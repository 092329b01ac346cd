// Who wrote which line of a note, from version to version. Pure. A note is written by several: what outsiders have put into one
// line must not be read as the owner's because the owner wrote the next one.
import { letterOf, linesOf, type DocumentAuthor, type LineAuthors } from "@parley/contracts";

/** Most trusted first. */
const trust: readonly DocumentAuthor[] = ["owner", "import", "agent", "untrusted"];

export interface Written {
  text: string;
  authors: LineAuthors;
}

/**
 * A line that stood there before keeps its author, wherever it stands now; every other one is the new version's. The whole text
 * left as it is by a more trusted author is that author's: a person has vouched for it.
 */
export function lineAuthors(before: Written | undefined, text: string, author: DocumentAuthor): LineAuthors {
  const lines = linesOf(text);
  if (before === undefined || (before.text === text && author !== "untrusted" && author !== "agent"))
    return letterOf(author).repeat(lines.length);
  const known = new Map<string, string[]>();
  for (const [index, line] of linesOf(before.text).entries()) {
    const letter = before.authors[index];
    if (letter === undefined) continue;
    const same = known.get(line);
    if (same === undefined) known.set(line, [letter]);
    else same.push(letter);
  }
  return lines.map((line) => known.get(line)?.shift() ?? letterOf(author)).join("");
}

/** Of several authors the one that is trusted least; of none the agent. */
export function leastTrusted(authors: Iterable<DocumentAuthor>): DocumentAuthor {
  let least = -1;
  for (const author of authors) least = Math.max(least, trust.indexOf(author));
  return trust[least] ?? "agent";
}
