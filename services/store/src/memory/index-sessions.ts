// Keeps the index of conversations up to date with the sessions' logs: messages of people and the agent's answers. Excludes input from
// jobs, webhooks and other agents, groups, and tool traffic.
import { textOf, type Part, type TrustLevel } from "@parley/contracts";
import type { PoolClient } from "../db/database.ts";
import { isTainted, senderOf } from "../db/mappers.ts";
import { chunksOf } from "./chunk.ts";
import { insertChunks, madeBy, type NewChunk } from "./index-chunks.ts";
import { audienceOf } from "./scope.ts";

/** Messages per transaction. */
const pageSize = 500;

interface Behind {
  id: string;
  /** The last sequence number of its log. */
  seq: number;
  after: number;
  made_by: string | null;
}

interface MessageRow {
  seq: number;
  turn_id: string;
  role: string;
  parts: string;
  sender: string | null;
  tainted: boolean | null;
  day: string;
  trust: TrustLevel;
}

/** Sessions with new log entries, without sub-agents. */
export async function sessionsBehind(client: PoolClient, language: string): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(
    `SELECT s.id FROM parley.sessions s LEFT JOIN parley.memory_sessions m ON m.session_id = s.id
     WHERE s.parent_id IS NULL AND (coalesce(m.seq, 0) < s.seq OR m.made_by <> $1)`,
    [madeBy(language)],
  );
  return rows.map(({ id }) => id);
}

/** Indexes one page of a session, within the caller's transaction; true when there is more. */
export async function indexSession(client: PoolClient, language: string, sessionId: string): Promise<boolean> {
  const version = madeBy(language);
  const { rows } = await client.query<Behind>(
    `SELECT s.id, s.seq, coalesce(m.seq, 0) AS after, m.made_by
     FROM parley.sessions s LEFT JOIN parley.memory_sessions m ON m.session_id = s.id WHERE s.id = $1`,
    [sessionId],
  );
  const session = rows[0];
  if (session === undefined) return false;
  const rebuilds = session.made_by !== null && session.made_by !== version;
  if (rebuilds) await client.query("DELETE FROM parley.memory_chunks WHERE session_id = $1", [sessionId]);
  const after = rebuilds ? 0 : session.after;
  const messages = await client.query<MessageRow>(
    `SELECT m.seq, m.turn_id, m.role, m.parts, m.sender, m.tainted, to_char(m.created_at, 'YYYY-MM-DD') AS day, t.trust
     FROM parley.messages m JOIN parley.turns t ON t.id = m.turn_id
     WHERE m.session_id = $1 AND m.seq > $2 AND m.seq <= $3 AND m.role IN ('user', 'assistant') ORDER BY m.seq LIMIT ${pageSize}`,
    [sessionId, after, session.seq],
  );
  const scopes = await scopesByTurn(client, [...new Set(messages.rows.map((row) => row.turn_id))]);
  const chunks = messages.rows.flatMap((row) => chunksOfMessage(row, sessionId, scopes.get(row.turn_id) ?? null));
  await insertChunks(client, language, inContext(chunks, rebuilds ? null : await lastChunk(client, sessionId)));
  const more = messages.rows.length === pageSize;
  await client.query(
    `INSERT INTO parley.memory_sessions (session_id, seq, made_by) VALUES ($1, $2, $3)
     ON CONFLICT (session_id) DO UPDATE SET seq = excluded.seq, made_by = excluded.made_by`,
    [sessionId, more ? (messages.rows.at(-1)?.seq ?? session.seq) : session.seq, version],
  );
  return more;
}

/** The scope of each turn's conversation; only turns of people have one. */
export async function scopesByTurn(client: PoolClient, turnIds: string[]): Promise<Map<string, string | null>> {
  const { rows } = await client.query<{ turn_id: string; trust: TrustLevel; sender: string }>(
    `SELECT i.turn_id, t.trust, i.sender FROM parley.inbox i JOIN parley.turns t ON t.id = i.turn_id
     WHERE i.turn_id = ANY($1::uuid[]) AND t.trust IN ('owner', 'user', 'guest')`,
    [turnIds],
  );
  const byTurn = Map.groupBy(rows, (row) => row.turn_id);
  return new Map(
    [...byTurn].map(([turnId, inputs]) => {
      const senders = inputs.map(({ sender }) => senderOf(sender));
      return [turnId, audienceOf(inputs[0]?.trust ?? "guest", senders).conversations];
    }),
  );
}

type Piece = Omit<NewChunk, "context">;
type Before = Pick<NewChunk, "scope" | "day" | "text">;

/** Characters of context: the end of the previous message. */
const contextChars = 400;

/** Adds to each chunk the preceding text of the same day and scope. */
function inContext(chunks: readonly Piece[], last: Before | null): NewChunk[] {
  return chunks.map((chunk, index) => {
    const before = chunks[index - 1] ?? last;
    const near = before !== null && before.scope === chunk.scope && before.day === chunk.day;
    return { ...chunk, context: near ? before.text.slice(-contextChars).toWellFormed() : "" };
  });
}

/** The last indexed chunk of the session. */
async function lastChunk(client: PoolClient, sessionId: string): Promise<Before | null> {
  const { rows } = await client.query<Before>(
    `SELECT scope, to_char(day, 'YYYY-MM-DD') AS day, text FROM parley.memory_chunks
     WHERE session_id = $1 ORDER BY id DESC LIMIT 1`,
    [sessionId],
  );
  return rows[0] ?? null;
}

function chunksOfMessage(row: MessageRow, sessionId: string, scope: string | null): Piece[] {
  const sender = row.sender === null ? null : senderOf(row.sender);
  // Excludes messages of the loop and reports of sub-agents.
  if (scope === null || (row.role === "user" && sender?.origin !== "user")) return [];
  const parts = JSON.parse(row.parts) as Part[];
  const tainted = isTainted(row.tainted, sender ?? undefined, parts);
  const text = textOf(parts).replaceAll("\0", " ").toWellFormed();
  const person = row.role === "user";
  return chunksOf(text).map((chunk) => ({
    ...chunk,
    scope,
    path: null,
    sessionId,
    turnId: row.turn_id,
    seq: row.seq,
    author: tainted ? "untrusted" : !person ? "agent" : sender?.role === "owner" ? "owner" : "untrusted",
    speaker: person ? (sender?.contact.name ?? null) : null,
    day: row.day,
  }));
}
