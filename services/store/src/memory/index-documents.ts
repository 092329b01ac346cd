// Keeps the index of notes up to date with the documents. Indexed versions are compared with the newest ones, so missed changes are
// detected regardless of the writer.
import { authorAt, isMemoryPath, linesOf, type LineAuthors } from "@parley/contracts";
import type { PoolClient } from "../db/database.ts";
import { authorsOfVersion } from "./authors-of-version.ts";
import { leastTrusted } from "./authors.ts";
import { chunksOf } from "./chunk.ts";
import { insertChunks, madeBy, sha256, type NewChunk } from "./index-chunks.ts";
import { notesScope } from "./scope.ts";

interface Stale {
  path: string;
  version: number;
  deleted: boolean;
  content: string;
}

/** Paths whose newest version is not indexed. */
export async function stalePaths(client: PoolClient, language: string): Promise<string[]> {
  const { rows } = await client.query<{ path: string }>(
    `SELECT d.path FROM parley.documents d LEFT JOIN parley.memory_documents m USING (path)
     WHERE d.latest AND (d.path = 'MEMORY.md' OR d.path LIKE 'memory/%')
       AND (m.path IS NULL OR m.version <> d.version OR m.made_by <> $1)`,
    [madeBy(language)],
  );
  return rows.map(({ path }) => path);
}

/** Brings the index of one note up to its newest version, within the caller's transaction. */
export async function indexDocument(client: PoolClient, language: string, path: string): Promise<LineAuthors> {
  if (!isMemoryPath(path)) return "";
  const { rows } = await client.query<Stale>(
    "SELECT path, version, deleted, content FROM parley.documents WHERE path = $1 AND latest",
    [path],
  );
  const document = rows[0];
  if (document === undefined) return "";
  const authors = await authorsOfVersion(client, document);
  const version = madeBy(language);
  const before = await client.query<{ same: boolean }>(
    "SELECT made_by = $2 AS same FROM parley.memory_documents WHERE path = $1",
    [path, version],
  );
  await replaceChunks(client, language, document, authors, before.rows[0]?.same === true);
  await client.query(
    `INSERT INTO parley.memory_documents (path, version, made_by, authors) VALUES ($1, $2, $3, $4)
     ON CONFLICT (path) DO UPDATE SET version = excluded.version, made_by = excluded.made_by, authors = excluded.authors`,
    [path, document.version, version, authors],
  );
  return authors;
}

/** A chunk with unchanged text keeps its words: only its position and author are updated. */
async function replaceChunks(
  client: PoolClient,
  language: string,
  { path, content, deleted }: Stale,
  authors: LineAuthors,
  keep: boolean,
): Promise<void> {
  const untrusted = (line: number) => (authorAt(authors, line) === "untrusted" ? "untrusted" : "ours");
  const wanted = deleted ? [] : chunksOf(content, untrusted);
  const there = keep
    ? (
        await client.query<{ id: number; sha256: string }>(
          "SELECT id, sha256 FROM parley.memory_chunks WHERE path = $1",
          [path],
        )
      ).rows
    : [];
  const ids = new Map<string, number[]>();
  for (const { id, sha256: hash } of there) ids.set(hash, [...(ids.get(hash) ?? []), id]);
  const day = dayOf(path);
  const kept: { id: number; chunk: NewChunk }[] = [];
  const added: NewChunk[] = [];
  const lines = linesOf(content);
  for (const { text, fromLine, toLine } of wanted) {
    const written = lines.slice(fromLine - 1, toLine);
    const chunk: NewChunk = {
      scope: notesScope,
      path,
      sessionId: null,
      turnId: null,
      seq: null,
      fromLine,
      toLine,
      text,
      author: leastTrusted(
        written.flatMap((line, at) => (line.trim() === "" ? [] : [authorAt(authors, fromLine - 1 + at)])),
      ),
      speaker: null,
      day,
      context: "",
    };
    const id = ids.get(sha256(text))?.shift();
    if (id === undefined) added.push(chunk);
    else kept.push({ id, chunk });
  }
  await client.query("DELETE FROM parley.memory_chunks WHERE path = $1 AND id <> ALL($2::bigint[])", [
    path,
    kept.map(({ id }) => id),
  ]);
  await client.query(
    `UPDATE parley.memory_chunks c SET from_line = k.from_line, to_line = k.to_line, author = k.author
     FROM unnest($1::bigint[], $2::int[], $3::int[], $4::text[]) AS k (id, from_line, to_line, author)
     WHERE c.id = k.id AND (c.from_line, c.to_line, c.author) IS DISTINCT FROM (k.from_line, k.to_line, k.author)`,
    [
      kept.map(({ id }) => id),
      kept.map(({ chunk }) => chunk.fromLine),
      kept.map(({ chunk }) => chunk.toLine),
      kept.map(({ chunk }) => chunk.author),
    ],
  );
  await insertChunks(client, language, added);
}

/** The day a note is named after. */
export function dayOf(path: string): string | null {
  const day = /^memory\/(?:.*\/)?(\d{4}-\d{2}-\d{2})[^/]*\.md$/.exec(path)?.[1];
  return day !== undefined && !Number.isNaN(Date.parse(day)) ? day : null;
}
