// Memory search and reading. The requesting turn determines whose memory is searched.
import { authorAt, linesOf, type MemoryHit, type MemorySettings } from "@parley/contracts";
import { withClient, type PoolClient } from "../../db/database.ts";
import { findByVector } from "../../memory/vector-search.ts";
import { findByWords } from "../../memory/bm25.ts";
import { refreshIndex } from "../../memory/refresh-index.ts";
import { boostOf, fuse, type Ranked } from "../../memory/rank-fusion.ts";
import { audienceOfTurn, scopesOf } from "../../memory/scope.ts";
import { vectorOf } from "../../memory/vectors.ts";
import type { Handlers } from "../handler.ts";

/** Maximum candidates of each ranking before the fusion. */
const candidates = 200;
/** Maximum UTF-8 bytes of the texts of one reply: the whole reply stays below the bus's limit. */
const maxTextBytes = 200 * 1024;

interface Piece {
  id: number;
  path: string | null;
  session_id: string | null;
  turn_id: string | null;
  seq: number | null;
  from_line: number;
  to_line: number;
  text: string;
  author: MemoryHit["author"];
  speaker: string | null;
  day: string | null;
}

export const memoryHandlers = {
  async memorySearch({ database, memorySettings: settings }, input) {
    await refreshIndex(database, settings);
    return withClient(database, async (client) => {
      const audience = await audienceOfTurn(client, input.turnId);
      const scopes = scopesOf(audience, settings.sessions);
      if (scopes.length === 0) return { hits: [], audience: audience.kind };
      const byWords = await findByWords(client, settings.language, scopes, input.query, candidates);
      const { vector } = input;
      const byVector =
        vector === undefined
          ? undefined
          : await findByVector(client, scopes, { model: vector.model, vector: vectorOf(vector.values) }, candidates);
      const ranked = fuse(byWords, byVector);
      const pieces = await read(client, scopes, ranked, input.turnId);
      const hits = order(ranked, pieces, settings).slice(0, input.limit);
      return { hits: withinBytes(hits), audience: audience.kind };
    });
  },

  async memoryGet({ database, memorySettings: settings }, input) {
    await refreshIndex(database, { ...settings, sessions: false });
    return withClient(database, async (client) => {
      const audience = await audienceOfTurn(client, input.turnId);
      if (audience.kind !== "owner") return { status: "refused" };
      const { rows } = await client.query<{ version: number; content: string; authors: string }>(
        `SELECT d.version, d.content, m.authors FROM parley.documents d JOIN parley.memory_documents m USING (path, version)
         WHERE d.path = $1 AND NOT d.deleted`,
        [input.path],
      );
      const row = rows[0];
      if (row === undefined) return { status: "missing" };
      const all = linesOf(row.content);
      let bytes = 0;
      const lines = all
        .slice(input.from - 1, input.from - 1 + input.lines)
        .map((text, index) => ({ text, author: authorAt(row.authors, input.from - 1 + index) }))
        .filter(({ text }) => (bytes += Buffer.byteLength(JSON.stringify(text)) + 30) <= maxTextBytes);
      return { status: "found", path: input.path, version: row.version, from: input.from, lines, total: all.length };
    });
  },
} satisfies Partial<Handlers>;

/** Excludes the current turn, because the conversation already contains it. */
async function read(
  client: PoolClient,
  scopes: readonly string[],
  ranked: readonly Ranked[],
  turnId: string,
): Promise<Map<number, Piece>> {
  const { rows } = await client.query<Piece>(
    `SELECT id, path, session_id, turn_id, seq, from_line, to_line, text, author, speaker, day::text AS day FROM parley.memory_chunks
     WHERE id = ANY($1::bigint[]) AND scope = ANY($2) AND (turn_id IS NULL OR turn_id NOT IN (
       SELECT t.id FROM parley.turns t WHERE t.id = $3 UNION SELECT t.root_turn_id FROM parley.turns t WHERE t.id = $3 AND t.root_turn_id IS NOT NULL))`,
    [ranked.map(({ id }) => id), scopes, turnId],
  );
  return new Map(rows.map((row) => [row.id, row]));
}

function order(ranked: readonly Ranked[], pieces: ReadonlyMap<number, Piece>, settings: MemorySettings): MemoryHit[] {
  const now = Date.now();
  return ranked
    .flatMap(({ id, rank, score }) => {
      const piece = pieces.get(id);
      return piece === undefined ? [] : [{ rank: rank * boostOf(piece, settings, now), hit: hitOf(piece, score) }];
    })
    .sort((one, other) => other.rank - one.rank)
    .map(({ hit }) => hit);
}

function hitOf(piece: Piece, score: number): MemoryHit {
  return {
    source: piece.path === null ? "session" : "document",
    path: piece.path ?? `sessions/${piece.session_id ?? ""}`,
    fromLine: piece.from_line,
    toLine: piece.to_line,
    text: piece.text,
    author: piece.author,
    date: piece.day,
    speaker: piece.speaker,
    seq: piece.seq,
    score: Math.round(score * 1000) / 1000,
  };
}

function withinBytes(hits: MemoryHit[]): MemoryHit[] {
  let bytes = 0;
  return hits.filter(({ text }) => (bytes += Buffer.byteLength(JSON.stringify(text))) <= maxTextBytes);
}
