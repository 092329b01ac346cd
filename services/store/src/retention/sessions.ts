// Deletes expired sessions and messages according to the settings: one session with its sub-agents and all their rows per transaction.
// Never the thread `main`, the session bound to its route, or a busy session.
import { mainSessionKey, threadKey, type ParleySettings, type ViewRecord } from "@parley/contracts";
import { withClient, type Database, type PoolClient } from "../db/database.ts";
import { runTransaction } from "../db/operation.ts";

export type SessionRetention = Pick<
  ParleySettings["session"],
  "retention_days" | "call_retention_days" | "max_sessions" | "max_messages"
>;

/** Maximum sessions per run. */
const sessionBatch = 100;
/** Maximum messages that one statement deletes. */
const messageBatch = 5_000;

/** Deletes sessions and messages above the age and count limits; returns how many were deleted. */
export async function deleteExpiredSessions(
  database: Database,
  settings: SessionRetention,
): Promise<{ sessions: number; messages: number }> {
  let sessions = 0;
  for (const session of await condemned(database, settings)) {
    if (await runTransaction(database, (client) => remove(client, session, settings))) sessions++;
  }
  return { sessions, messages: await forgetMessages(database, settings.max_messages) };
}

const candidate = `s.parent_id IS NULL AND s.key <> '${mainSessionKey}'
  AND s.id NOT IN (SELECT session_id FROM parley.bindings WHERE route = '${mainSessionKey}')`;
/** $1: retention in days of archived sessions; $2: of sessions of single calls; 0: never deleted. */
const tooOld = `($1 > 0 AND s.status = 'archived' AND s.updated_at < now() - $1 * interval '1 day'
  OR $2 > 0 AND s.single_call AND s.updated_at < now() - $2 * interval '1 day')`;

/** A voice session belongs to the session that its route is bound to. */
const voiceRouteOfSession = `route IN (
  SELECT route FROM parley.bindings WHERE session_id = ANY($1::uuid[])
  UNION ALL SELECT key FROM parley.sessions s WHERE id = ANY($1::uuid[]) AND NOT EXISTS (SELECT FROM parley.bindings b WHERE b.route = s.key))`;

interface Condemned {
  id: string;
  /** When it was last used: PostgreSQL's text, which has microseconds. */
  updatedAt: string;
  /** It is too old; otherwise it is above the maximum. */
  isAged: boolean;
}

const columns = 's.id, s.updated_at::text AS "updatedAt"';

/** Sessions to delete, the least recently used first. */
async function condemned(database: Database, settings: SessionRetention): Promise<Condemned[]> {
  const { retention_days: days, call_retention_days: callDays, max_sessions: most } = settings;
  return withClient(database, async (client) => {
    const found = new Map<string, Condemned>();
    if (days > 0 || callDays > 0) {
      const { rows } = await client.query<Omit<Condemned, "isAged">>(
        `SELECT ${columns} FROM parley.sessions s WHERE ${candidate} AND ${tooOld} ORDER BY s.updated_at LIMIT ${sessionBatch}`,
        [days, callDays],
      );
      for (const row of rows) found.set(row.id, { ...row, isAged: true });
    }
    if (most > 0) {
      const { rows } = await client.query<Omit<Condemned, "isAged">>(
        `SELECT ${columns} FROM parley.sessions s WHERE ${candidate} ORDER BY s.updated_at
         LIMIT least(${sessionBatch}, greatest(0, (SELECT count(*) FROM parley.sessions WHERE parent_id IS NULL) - $1))`,
        [most],
      );
      for (const row of rows) found.set(row.id, { ...row, isAged: false });
    }
    return [...found.values()];
  });
}

/** Returns false when the session is busy or was used again in the meantime. */
async function remove(client: PoolClient, session: Condemned, settings: SessionRetention): Promise<boolean> {
  const { id, updatedAt, isAged } = session;
  const { rows } = await client.query<{ id: string }>(
    `WITH RECURSIVE tree AS (
       SELECT s.id FROM parley.sessions s WHERE s.id = $3 AND ${candidate} AND (NOT $5 OR ${tooOld})
       UNION ALL SELECT c.id FROM parley.sessions c JOIN tree ON c.parent_id = tree.id
     ) SELECT id FROM parley.sessions WHERE id IN (SELECT id FROM tree) AND (id <> $3 OR updated_at = $4::timestamptz)
       ORDER BY id FOR UPDATE`,
    [settings.retention_days, settings.call_retention_days, id, updatedAt, isAged],
  );
  const ids = rows.map((row) => row.id);
  if (!ids.includes(id)) return false;
  const busy = await client.query(
    `SELECT FROM parley.turns WHERE session_id = ANY($1::uuid[]) AND state = 'running'
     UNION ALL SELECT FROM parley.inbox WHERE session_id = ANY($1::uuid[]) AND state = 'queued'
     UNION ALL SELECT FROM parley.outbox o JOIN parley.turns t ON t.id = o.turn_id
       WHERE t.session_id = ANY($1::uuid[]) AND o.state IN ('pending', 'sending')
     UNION ALL SELECT FROM parley.processes WHERE session_id = ANY($1::uuid[]) AND state = 'running'
     UNION ALL SELECT FROM parley.voice_sessions WHERE ${voiceRouteOfSession} AND state IN ('starting', 'listening', 'stopping')
     LIMIT 1`,
    [ids],
  );
  if (busy.rowCount !== 0) return false;
  await renameEarlierThreads(client, ids);
  // Voice sessions before the bindings that identify them. Other dependent rows are deleted by foreign keys.
  const ofTurns = "turn_id IN (SELECT id FROM parley.turns WHERE session_id = ANY($1::uuid[]))";
  for (const [table, condition] of [
    ["voice_sessions", voiceRouteOfSession],
    ["outbox", ofTurns],
    ["questions", ofTurns],
    ["approvals", ofTurns],
    ["steps", ofTurns],
    ["events", "session_id = ANY($1::uuid[])"],
    ["messages", "session_id = ANY($1::uuid[])"],
    ["inbox", "session_id = ANY($1::uuid[])"],
    ["turns", "session_id = ANY($1::uuid[])"],
    ["bindings", "session_id = ANY($1::uuid[])"],
    ["sessions", "id = ANY($1::uuid[])"],
  ] as const) {
    await client.query(`DELETE FROM parley.${table} WHERE ${condition}`, [ids]);
  }
  return true;
}

/** Without their bindings the routes of these sessions would return to the earlier threads that have the routes' names. */
async function renameEarlierThreads(client: PoolClient, ids: readonly string[]): Promise<void> {
  const { rows } = await client.query<{ id: string; key: string }>(
    `SELECT id, key FROM parley.sessions WHERE id <> ALL($1::uuid[])
       AND key IN (SELECT route FROM parley.bindings WHERE session_id = ANY($1::uuid[]))`,
    [ids],
  );
  for (const { id, key } of rows) {
    await client.query("UPDATE parley.sessions SET key = $2 WHERE id = $1", [id, threadKey(key, id)]);
  }
}

/** Deletes the oldest messages outside of the view in sessions with more than `most` messages. */
async function forgetMessages(database: Database, most: number): Promise<number> {
  if (most === 0) return 0;
  return withClient(database, async (client) => {
    const { rows } = await client.query<{ id: string; view: string }>(
      `SELECT id, view FROM parley.sessions WHERE view IS NOT NULL AND message_count > $1 ORDER BY updated_at DESC`,
      [most],
    );
    let forgotten = 0;
    for (const { id, view } of rows) {
      const { keepFirstTo, fromSeq } = JSON.parse(view) as ViewRecord;
      const { rowCount } = await client.query(
        `DELETE FROM parley.messages WHERE session_id = $1 AND seq IN (
           SELECT seq FROM parley.messages WHERE session_id = $1 AND seq > $2 AND seq < $3 ORDER BY seq
           LIMIT least(${messageBatch}, greatest(0, (SELECT count(*) FROM parley.messages WHERE session_id = $1) - $4)))`,
        [id, keepFirstTo, fromSeq, most],
      );
      forgotten += rowCount ?? 0;
    }
    return forgotten;
  });
}
