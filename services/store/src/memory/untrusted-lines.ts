// Untrusted lines of a document version, for use in prompts.
import { authorAt, linesOf, type LineAuthors, type LineRange } from "@parley/contracts";
import type { PoolClient } from "../db/database.ts";
import { authorsOfVersion } from "./authors-of-version.ts";

/** Maximum ranges of one document, to limit the marks in a prompt and the size of a reply near the bus's limit. */
const maxRanges = 100;

/** Most documents never had an untrusted line: then no versions are read. */
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
 * The untrusted lines of a text. A blank line counts like the lines around it. Above `max` ranges, the last range extends to the last
 * untrusted line and includes trusted lines in between. Pure.
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
