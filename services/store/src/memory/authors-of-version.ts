// Authors of the lines of each version of a document, stored with it. Versions of an older store are filled from their history.
import type { DocumentAuthor, LineAuthors } from "@parley/contracts";
import type { Database, PoolClient } from "../db/database.ts";
import { runTransaction } from "../db/operation.ts";
import { lineAuthors, type Written } from "./authors.ts";

interface Version {
  content: string;
  /** Of the lines that are new in it. */
  author: DocumentAuthor;
  deleted: boolean;
  restoredFrom: number | null;
}

/** Empty for a version that removed the document, and when there is no such version. */
export async function authorsOfVersion(
  client: PoolClient,
  { path, version }: { path: string; version: number },
): Promise<LineAuthors> {
  const read = () =>
    client.query<{ authors: LineAuthors | null }>(
      "SELECT authors FROM parley.documents WHERE path = $1 AND version = $2",
      [path, version],
    );
  const stored = await read();
  if (stored.rows[0]?.authors !== null) return stored.rows[0]?.authors ?? "";
  await fillAuthors(client, path);
  return (await read()).rows[0]?.authors ?? "";
}

/** The authors of a version that follows `current`. The caller holds the lock on documents. */
export async function authorsOfNext(
  client: PoolClient,
  path: string,
  current: { version: number; deleted: boolean } | null,
  next: Version,
): Promise<LineAuthors> {
  if (next.deleted) return "";
  if (next.restoredFrom !== null) return authorsOfVersion(client, { path, version: next.restoredFrom });
  if (current === null || current.deleted) return lineAuthors(undefined, next.content, next.author);
  const { version } = current;
  const authors = await authorsOfVersion(client, { path, version });
  const { rows } = await client.query<{ text: string }>(
    "SELECT content AS text FROM parley.documents WHERE path = $1 AND version = $2",
    [path, version],
  );
  return lineAuthors({ text: rows[0]?.text ?? "", authors }, next.content, next.author);
}

/** Fills all versions that an older store wrote. */
export async function fillAllAuthors(database: Database): Promise<void> {
  const { rows } = await database.query<{ path: string }>(
    "SELECT DISTINCT path FROM parley.documents WHERE authors IS NULL",
  );
  for (const { path } of rows) await runTransaction(database, (client) => fillAuthors(client, path));
}

/** Follows the versions of a document from the first one. */
async function fillAuthors(client: PoolClient, path: string): Promise<void> {
  const known = new Map<number, LineAuthors>();
  let before: Written | undefined;
  const { rows: versions } = await client.query<{ version: number }>(
    "SELECT version FROM parley.documents WHERE path = $1 ORDER BY version",
    [path],
  );
  for (const { version } of versions) {
    const { rows } = await client.query<Version & { authors: LineAuthors | null }>(
      `SELECT content, coalesce(line_author, author) AS author, deleted, restored_from AS "restoredFrom", authors
       FROM parley.documents WHERE path = $1 AND version = $2`,
      [path, version],
    );
    const next = rows[0];
    if (next === undefined) continue;
    const followed = next.deleted
      ? ""
      : (known.get(next.restoredFrom ?? 0) ?? lineAuthors(before, next.content, next.author));
    const authors = next.authors ?? followed;
    if (next.authors === null) {
      await client.query(
        "UPDATE parley.documents SET authors = $3 WHERE path = $1 AND version = $2 AND authors IS NULL",
        [path, version, authors],
      );
    }
    known.set(version, authors);
    before = next.deleted ? undefined : { text: next.content, authors };
  }
}
