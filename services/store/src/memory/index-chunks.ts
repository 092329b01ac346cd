// Puts pieces of text into the index, with the words PostgreSQL finds in them.
import { createHash } from "node:crypto";
import type { DocumentAuthor } from "@parley/contracts";
import type { PoolClient } from "../database.ts";
import { searchable } from "./searchable.ts";

/** Raised when the same text would be indexed otherwise than before. */
const format = 1;

/** How an index is made; what was made otherwise is made anew. */
export function madeBy(language: string): string {
  return `${format} ${language}`;
}

export interface NewChunk {
  scope: string;
  path: string | null;
  sessionId: string | null;
  turnId: string | null;
  seq: number | null;
  fromLine: number;
  toLine: number;
  text: string;
  author: DocumentAuthor;
  speaker: string | null;
  /** YYYY-MM-DD. */
  day: string | null;
}

export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** Who speaks is found by the name as well. */
const words = ({ speaker, text }: NewChunk): string => searchable(speaker === null ? text : `${speaker}: ${text}`);

export async function insertChunks(client: PoolClient, language: string, chunks: readonly NewChunk[]): Promise<void> {
  if (chunks.length === 0) return;
  const column = <T>(value: (chunk: NewChunk) => T) => chunks.map(value);
  await client.query(
    `WITH given AS MATERIALIZED (
       SELECT nextval('parley.memory_chunk_ids') AS id, g.*, to_tsvector($1::regconfig, g.words) AS found
       FROM unnest($2::text[], $3::text[], $4::uuid[], $5::uuid[], $6::bigint[], $7::int[], $8::int[], $9::text[], $10::text[],
                   $11::text[], $12::text[], $13::date[], $14::text[])
         AS g (scope, path, session_id, turn_id, seq, from_line, to_line, text, sha256, author, speaker, day, words)
     ), measured AS MATERIALIZED (
       SELECT given.*, (SELECT coalesce(sum(cardinality(w.positions)), 0) FROM unnest(found) AS w)::int AS length FROM given
     ), added AS (
       INSERT INTO parley.memory_chunks (id, scope, path, session_id, turn_id, seq, from_line, to_line, text, sha256, length, author, speaker, day)
       SELECT id, scope, path, session_id, turn_id, seq, from_line, to_line, text, sha256, length, author, speaker, day FROM measured
     )
     INSERT INTO parley.memory_words (scope, word, chunk_id, count, length)
     SELECT m.scope, w.lexeme, m.id, cardinality(w.positions), m.length FROM measured m, unnest(m.found) AS w`,
    [
      language,
      column((chunk) => chunk.scope),
      column((chunk) => chunk.path),
      column((chunk) => chunk.sessionId),
      column((chunk) => chunk.turnId),
      column((chunk) => chunk.seq),
      column((chunk) => chunk.fromLine),
      column((chunk) => chunk.toLine),
      column((chunk) => chunk.text),
      column((chunk) => sha256(chunk.text)),
      column((chunk) => chunk.author),
      column((chunk) => chunk.speaker),
      column((chunk) => chunk.day),
      column(words),
    ],
  );
}
