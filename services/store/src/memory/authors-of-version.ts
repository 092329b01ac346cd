// Authors of the lines of each version of a document, stored with it. Versions of an older store are filled from their history.
import type { DocumentAuthor, LineAuthors } from "@parley/contracts";
import { withClient, type Database, type PoolClient } from "../db/database.ts";
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
  return lineAuthors({ text: await textOf(client, path, version), authors }, next.content, next.author);
}

/** Fills all versions that an older store wrote, each in a statement of its own: no history is too long for a transaction. */
export async function fillAllAuthors(database: Database, stopping?: AbortSignal): Promise<void> {
  const { rows } = await database.query<{ path: string }>(
    "SELECT DISTINCT path FROM parley.documents WHERE authors IS NULL",
  );
  for (const { path } of rows) {
    if (stopping?.aborted === true) return;
    await withClient(database, (client) => fillAuthors(client, path));
  }
}

interface VersionRow {
  version: number;
  /** Of the lines that are new in it. */
  author: DocumentAuthor;
  deleted: boolean;
  restoredFrom: number | null;
  authors: LineAuthors | null;
}

/** Follows the versions of a document from the first one, and reads the text of those without authors and of their predecessors. */
async function fillAuthors(client: PoolClient, path: string): Promise<void> {
  const known = new Map<number, LineAuthors>();
  let previous: VersionRow | undefined;
  const { rows: versions } = await client.query<VersionRow>(
    `SELECT version, coalesce(line_author, author) AS author, deleted, restored_from AS "restoredFrom", authors
     FROM parley.documents WHERE path = $1 ORDER BY version`,
    [path],
  );
  for (const next of versions) {
    const authors = next.authors ?? (await followed(client, path, next, previous, known));
    if (next.authors === null) {
      await client.query(
        "UPDATE parley.documents SET authors = $3 WHERE path = $1 AND version = $2 AND authors IS NULL",
        [path, next.version, authors],
      );
    }
    known.set(next.version, authors);
    previous = next;
  }
}

/** The authors of a version from those of the version before it. */
async function followed(
  client: PoolClient,
  path: string,
  next: VersionRow,
  previous: VersionRow | undefined,
  known: ReadonlyMap<number, LineAuthors>,
): Promise<LineAuthors> {
  if (next.deleted) return "";
  const restored = known.get(next.restoredFrom ?? 0);
  if (restored !== undefined) return restored;
  const before: Written | undefined =
    previous === undefined || previous.deleted
      ? undefined
      : { text: await textOf(client, path, previous.version), authors: known.get(previous.version) ?? "" };
  return lineAuthors(before, await textOf(client, path, next.version), next.author);
}

/** Empty when there is no such version. */
async function textOf(client: PoolClient, path: string, version: number): Promise<string> {
  const { rows } = await client.query<{ text: string }>(
    "SELECT content AS text FROM parley.documents WHERE path = $1 AND version = $2",
    [path, version],
  );
  return rows[0]?.text ?? "";
}
