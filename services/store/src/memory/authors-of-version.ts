// Authors of the lines of one version of a document, computed by following its versions.
import type { DocumentAuthor, LineAuthors } from "@parley/contracts";
import type { PoolClient } from "../db/database.ts";
import { lineAuthors, type Written } from "./authors.ts";

interface VersionOf {
  path: string;
  version: number;
}

interface Version {
  content: string;
  author: DocumentAuthor;
  deleted: boolean;
  restoredFrom: number | null;
}

/**
 * Starts from the indexed version, or from the first one: for documents outside memory, versions older than the index, and if a restored
 * version follows, whose lines keep their earlier authors. A version that removed the document has no lines.
 */
export async function authorsOfVersion(client: PoolClient, of: VersionOf): Promise<LineAuthors> {
  const found = await client.query<Written & { version: number; deleted: boolean }>(
    `SELECT m.version, m.authors, d.content AS text, d.deleted FROM parley.memory_documents m
     JOIN parley.documents d ON d.path = m.path AND d.version = m.version WHERE m.path = $1 AND m.version <= $2`,
    [of.path, of.version],
  );
  const known = found.rows[0];
  const broughtBack = await restored(client, of, known?.version ?? 0);
  const from = broughtBack.size === 0 ? known : undefined;
  const then = new Map<number, Written>();
  let written: Written | undefined = from?.deleted === true ? undefined : from;
  for (let version = (from?.version ?? 0) + 1; version <= of.version; version++) {
    const { rows } = await client.query<Version>(
      `SELECT content, coalesce(line_author, author) AS author, deleted, restored_from AS "restoredFrom"
       FROM parley.documents WHERE path = $1 AND version = $2`,
      [of.path, version],
    );
    const next = rows[0];
    if (next === undefined) continue;
    written = then.get(next.restoredFrom ?? 0) ?? follow(written, next);
    if (broughtBack.has(version) && written !== undefined) then.set(version, written);
  }
  return written?.authors ?? "";
}

/** The versions that were restored up to this version; empty when no version after `since` is a restoration. */
async function restored(client: PoolClient, { path, version: last }: VersionOf, since: number): Promise<Set<number>> {
  const { rows } = await client.query<{ version: number; of: number }>(
    `SELECT version, restored_from AS of FROM parley.documents
     WHERE path = $1 AND version <= $2 AND restored_from IS NOT NULL`,
    [path, last],
  );
  return new Set(rows.some(({ version }) => version > since) ? rows.map(({ of }) => of) : []);
}

function follow(before: Written | undefined, { content, author, deleted }: Version): Written | undefined {
  return deleted ? undefined : { text: content, authors: lineAuthors(before, content, author) };
}
