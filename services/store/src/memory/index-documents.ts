// Keeps the index of the notes in step with the documents. What is indexed is compared with what stands there, version by
// version, so that it does not matter who wrote, or what was missed.
import { isMemoryPath, type DocumentAuthor } from "@parley/contracts";
import type { PoolClient } from "../database.ts";
import { authorAt, leastTrusted, lineAuthors, linesOf, type LineAuthors, type Written } from "./authors.ts";
import { chunksOf } from "./chunk.ts";
import { insertChunks, madeBy, sha256, type NewChunk } from "./index-chunks.ts";
import { notesScope } from "./scope.ts";

interface Stale {
  path: string;
  version: number;
  deleted: boolean;
  content: string;
}

/** The newest versions that the index was not made of. */
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
  const authors = await authorsOf(client, document);
  const made = madeBy(language);
  const before = await client.query<{ same: boolean }>(
    "SELECT made_by = $2 AS same FROM parley.memory_documents WHERE path = $1",
    [path, made],
  );
  await replaceChunks(client, language, document, authors, before.rows[0]?.same === true);
  await client.query(
    `INSERT INTO parley.memory_documents (path, version, made_by, authors) VALUES ($1, $2, $3, $4)
     ON CONFLICT (path) DO UPDATE SET version = excluded.version, made_by = excluded.made_by, authors = excluded.authors`,
    [path, document.version, made, authors],
  );
  return authors;
}

interface Version {
  content: string;
  author: DocumentAuthor;
  deleted: boolean;
  restoredFrom: number | null;
}

/**
 * Line by line, followed through every version since the one that is known. Where an old version was brought back meanwhile, from the
 * first one on: its lines have the authors that they had then.
 */
async function authorsOf(client: PoolClient, document: Stale): Promise<LineAuthors> {
  const found = await client.query<Written & { version: number; deleted: boolean }>(
    `SELECT m.version, m.authors, d.content AS text, d.deleted FROM parley.memory_documents m
     JOIN parley.documents d ON d.path = m.path AND d.version = m.version WHERE m.path = $1`,
    [document.path],
  );
  const known = found.rows[0];
  const broughtBack = await restored(client, document.path, known?.version ?? 0);
  const from = broughtBack.size === 0 ? known : undefined;
  const then = new Map<number, Written>();
  let written: Written | undefined = from?.deleted === true ? undefined : from;
  for (let version = (from?.version ?? 0) + 1; version <= document.version; version++) {
    const { rows } = await client.query<Version>(
      `SELECT content, coalesce(line_author, author) AS author, deleted, restored_from AS "restoredFrom"
       FROM parley.documents WHERE path = $1 AND version = $2`,
      [document.path, version],
    );
    const next = rows[0];
    if (next === undefined) continue;
    written = then.get(next.restoredFrom ?? 0) ?? follow(written, next);
    if (broughtBack.has(version) && written !== undefined) then.set(version, written);
  }
  return written?.authors ?? "";
}

/** The versions that any version of the document brought back; none where none after `since` did. */
async function restored(client: PoolClient, path: string, since: number): Promise<Set<number>> {
  const { rows } = await client.query<{ version: number; of: number }>(
    `SELECT version, restored_from AS of FROM parley.documents WHERE path = $1 AND restored_from IS NOT NULL`,
    [path],
  );
  return new Set(rows.some(({ version }) => version > since) ? rows.map(({ of }) => of) : []);
}

function follow(before: Written | undefined, { content, author, deleted }: Version): Written | undefined {
  return deleted ? undefined : { text: content, authors: lineAuthors(before, content, author) };
}

/** A piece whose text stays keeps its words: only its place and author are written. */
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
