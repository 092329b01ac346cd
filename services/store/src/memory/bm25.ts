// Full-text ranking: BM25 over the words that PostgreSQL extracts, with statistics per scope. PostgreSQL's ts_rank ignores the rarity of
// words and finds far less: docs/memory.md has the figures.
import type { PoolClient } from "../db/database.ts";
import { searchable } from "./normalize.ts";

/** The usual values, also used in our measurements. */
const k1 = 1.2;
const b = 0.75;
/** Minimum pg_trgm similarity at which a known word replaces a mistyped one. */
const likeness = 0.5;
const maxLike = 3;
/** Minimum length of a word for typo correction. */
const leastLength = 4;

export interface TextMatch {
  id: number;
  score: number;
  /** Share of the query's words, weighted by rarity; 1: each of them once, in a chunk of average length. */
  share: number;
}

/** The best chunks, best first. Word counts are stored doubled, because context words count half. */
export async function findByWords(
  client: PoolClient,
  language: string,
  scopes: readonly string[],
  query: string,
  limit: number,
): Promise<TextMatch[]> {
  const { rows: queryWords } = await client.query<{ word: string; known: boolean }>(
    `SELECT q.lexeme AS word, EXISTS (SELECT FROM parley.memory_words w WHERE w.scope = ANY($3) AND w.word = q.lexeme) AS known
     FROM unnest(to_tsvector($1::regconfig, $2)) AS q`,
    [language, searchable(query), scopes],
  );
  if (queryWords.length === 0) return [];
  const known = queryWords.filter((each) => each.known).map(({ word }) => ({ word, weight: 1 }));
  const strange = queryWords.filter((each) => !each.known).map(({ word }) => word);
  const words = [...known, ...(await similarWords(client, scopes, strange))];
  const { rows } = await client.query<TextMatch>(
    `WITH size AS (
       SELECT count(*)::float8 AS n, greatest(avg(length), 1)::float8 AS mean FROM parley.memory_chunks WHERE scope = ANY($1)
     ), hits AS (
       SELECT w.chunk_id, w.word, w.count, w.length, a.weight, count(*) OVER (PARTITION BY w.word) AS df
       FROM unnest($2::text[], $3::float8[]) AS a (word, weight)
       JOIN parley.memory_words w ON w.word = a.word AND w.scope = ANY($1)
     ), weighed AS (
       SELECT h.*, s.mean, ln(1 + (s.n - h.df + 0.5) / (h.df + 0.5)) AS idf FROM hits h, size s
     ), most AS (
       SELECT coalesce((SELECT sum(idf) FROM (SELECT DISTINCT word, idf FROM weighed WHERE weight = 1) AS each), 0)
              + $5 * (SELECT ln(1 + (n + 0.5) / 0.5) FROM size) AS score
     )
     SELECT ranked.chunk_id AS id, ranked.score, least(1, ranked.score / most.score) AS share FROM most, (
       SELECT chunk_id, sum(weight * idf * count * ${k1 + 1} / (count + ${2 * k1} * (${1 - b} + ${b} * length / mean))) AS score
       FROM weighed GROUP BY chunk_id
     ) AS ranked ORDER BY ranked.score DESC, chunk_id DESC LIMIT $4`,
    [scopes, words.map(({ word }) => word), words.map(({ weight }) => weight), limit, strange.length],
  );
  return rows;
}

/** Indexed words similar to unknown query words; none without pg_trgm. */
async function similarWords(
  client: PoolClient,
  scopes: readonly string[],
  strange: readonly string[],
): Promise<{ word: string; weight: number }[]> {
  const mistyped = strange.filter((word) => word.length >= leastLength);
  if (mistyped.length === 0) return [];
  const { rows: where } = await client.query<{ similarity: string }>(
    `SELECT format('%I.similarity', n.nspname) AS similarity
     FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm'`,
  );
  const similarity = where[0]?.similarity;
  if (similarity === undefined) return [];
  const { rows } = await client.query<{ word: string; weight: number }>(
    `SELECT best.word, max(best.weight)::float8 AS weight FROM unnest($2::text[]) AS s (strange), LATERAL (
       SELECT known.word, ${similarity}(known.word, s.strange) AS weight
       FROM (SELECT DISTINCT word FROM parley.memory_words WHERE scope = ANY($1) AND length(word) >= ${leastLength}) AS known
       WHERE abs(length(known.word) - length(s.strange)) <= 2 AND ${similarity}(known.word, s.strange) >= ${likeness}
       ORDER BY weight DESC, known.word LIMIT ${maxLike}
     ) AS best GROUP BY best.word`,
    [scopes, mistyped],
  );
  return rows;
}
