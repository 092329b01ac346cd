// Which lines of a version of a document outsiders had a hand in, for whoever shows it to a model.
import { authorAt, linesOf, type LineAuthors, type LineRange } from "@parley/contracts";
import type { PoolClient } from "../database.ts";
import { authorsOfVersion } from "./authors-of-version.ts";

/** Of one document. Its marks in a prompt stay few, and so does what is said of it beside a content near the bus's cap. */
const maxRanges = 100;

/** Most documents never had such a line: then no version is gone through. */
export async function untrustedLines(
  client: PoolClient,
  { path, version, content }: { path: string; version: number; content: string },
): Promise<LineRange[]> {
  const { rowCount } = await client.query(
    "SELECT FROM parley.documents WHERE path = $1 AND version <= $2 AND 'untrusted' IN (author, line_author) LIMIT 1",
    [path, version],
  );
  return rowCount === 0 ? [] : untrustedRanges(content, await authorsOfVersion(client, { path, version }), maxRanges);
}

/**
 * The untrusted lines of a text; a blank line counts as what is around it, and by itself as nothing. Where there are more than `max`
 * ranges, the last one reaches to the last untrusted line: trusted ones between are counted with them. Pure.
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
