// Adds chunks to the index, with the words that PostgreSQL extracts.
import { createHash } from "node:crypto";
import type { DocumentAuthor } from "@parley/contracts";
import type { PoolClient } from "../db/database.ts";
import { dayWords } from "./date-terms.ts";
import { searchable } from "./normalize.ts";

/** Increase it when the same text would be indexed differently. */
const format = 2;

/** Identifies how an index was built; a differing index is rebuilt. */
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
  /** The preceding text: an answer is also found by the words of its question, which count half. */
  context: string;
}

export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** The speaker's name is searchable as well. */
const words = ({ speaker, text }: NewChunk): string => searchable(speaker === null ? text : `${speaker}: ${text}`);

export async function insertChunks(client: PoolClient, language: string, chunks: readonly NewChunk[]): Promise<void> {
  if (chunks.length === 0) return;
  const column = <T>(value: (chunk: NewChunk) => T) => chunks.map(value);
  // Counts are doubled: 2 for a word of the chunk, 1 for a word of the context. The date is searchable but adds no length.
  await client.query(
    `WITH given AS MATERIALIZED (
       SELECT nextval('parley.memory_chunk_ids') AS id, g.*, to_tsvector($1::regconfig, g.words) AS found,
              to_tsvector($1::regconfig, g.context) AS before, to_tsvector($1::regconfig, g.day_words) AS dated
       FROM unnest($2::text[], $3::text[], $4::uuid[], $5::uuid[], $6::bigint[], $7::int[], $8::int[], $9::text[], $10::text[],
                   $11::text[], $12::text[], $13::date[], $14::text[], $15::text[], $16::text[])
         AS g (scope, path, session_id, turn_id, seq, from_line, to_line, text, sha256, author, speaker, day, words, context, day_words)
     ), counted AS MATERIALIZED (
       SELECT g.id, w.lexeme AS word, sum(w.halves)::int AS count FROM given g, LATERAL (
         SELECT lexeme, 2 * cardinality(positions) AS halves FROM unnest(g.found)
         UNION ALL SELECT lexeme, cardinality(positions) FROM unnest(g.before)
         UNION ALL SELECT lexeme, 2 * cardinality(positions) FROM unnest(g.dated)
       ) AS w GROUP BY g.id, w.lexeme
     ), measured AS MATERIALIZED (
       SELECT g.*, (SELECT coalesce(2 * sum(cardinality(w.positions)), 0) FROM unnest(g.found) AS w)::int
                 + (SELECT coalesce(sum(cardinality(w.positions)), 0) FROM unnest(g.before) AS w)::int AS length FROM given g
     ), added AS (
       INSERT INTO parley.memory_chunks (id, scope, path, session_id, turn_id, seq, from_line, to_line, text, sha256, length, author, speaker, day)
       SELECT id, scope, path, session_id, turn_id, seq, from_line, to_line, text, sha256, length, author, speaker, day FROM measured
     )
     INSERT INTO parley.memory_words (scope, word, chunk_id, count, length)
     SELECT m.scope, c.word, m.id, c.count, m.length FROM measured m JOIN counted c USING (id)`,
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
      column(({ context }) => searchable(context)),
      column(({ day }) => (day === null ? "" : searchable(dayWords(day, language)))),
    ],
  );
}
