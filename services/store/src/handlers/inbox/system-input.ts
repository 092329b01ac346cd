// Enqueues system input (jobs, heartbeats): any number of rows for any number of sessions in a few statements.
import { activeTrace } from "@parley/chassis";
import {
  newId,
  priorityOf,
  trustLevel,
  type Part,
  type ReplyAddress,
  type Sender,
  type TaskMode,
  type TrustLevel,
} from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import type { ReadyHint } from "../turns/notify.ts";

export interface SystemInput {
  /** Refers to the session it is bound to, otherwise to the session with its name, which is created if necessary. */
  route: string;
  /** Profile of a session that is created; null or omitted: the agent itself. */
  profile?: string | null;
  account: string;
  /** Unique within the account: a duplicate changes nothing. */
  externalId: string;
  text: string;
  sender: Sender;
  replyTo: ReplyAddress | null;
}

export interface PutInput {
  /** Null: it already existed. */
  inboxId: string | null;
  sessionId: string;
}

/** Stores input in the caller's transaction and returns the results in the same order. The sessions stay locked until the commit. */
export async function enqueueSystemInput(
  client: PoolClient,
  inputs: readonly SystemInput[],
  wakes: ReadyHint[],
): Promise<PutInput[]> {
  if (inputs.length === 0) return [];
  const sessions = await sessionsOf(client, new Map(inputs.map(({ route, profile }) => [route, profile ?? null])));
  const counts = new Map<string, number>();
  const placed = inputs.map((input) => {
    const sessionId = sessions.get(input.route);
    if (sessionId === undefined) throw new Error(`no session for the route ${input.route}`);
    const nth = (counts.get(sessionId) ?? 0) + 1;
    counts.set(sessionId, nth);
    return { input, sessionId, nth, id: newId() };
  });
  const ids = [...counts.keys()].sort();
  const { rows: numbered } = await client.query<{ id: string; before: number }>(
    `UPDATE parley.sessions s SET inbox_seq = inbox_seq + w.n FROM unnest($1::uuid[], $2::int[]) AS w(id, n)
     WHERE s.id = w.id RETURNING s.id, s.inbox_seq - w.n AS before`,
    [ids, ids.map((id) => counts.get(id))],
  );
  const before = new Map(numbered.map((row) => [row.id, row.before]));
  const { rows: kept } = await client.query<{ id: string }>(
    `INSERT INTO parley.inbox (id, session_id, seq, channel, account, external_id, priority, parts, reply_to, sender, mode, trust, trace)
     SELECT id, session_id, seq, 'internal', account, external_id, priority, parts, reply_to, sender, 'queue', trust, $11
     FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::int[], $7::text[], $8::text[], $9::text[], $10::text[])
       AS r(id, session_id, seq, account, external_id, priority, parts, reply_to, sender, trust)
     ON CONFLICT (channel, account, external_id) DO NOTHING RETURNING id`,
    [
      placed.map(({ id }) => id),
      placed.map(({ sessionId }) => sessionId),
      placed.map(({ sessionId, nth }) => (before.get(sessionId) ?? 0) + nth),
      placed.map(({ input }) => input.account),
      placed.map(({ input }) => input.externalId),
      placed.map(({ input }) => priorityOf[input.sender.origin]),
      placed.map(({ input }) => JSON.stringify([{ type: "text", text: input.text }])),
      placed.map(({ input }) => (input.replyTo === null ? null : JSON.stringify(input.replyTo))),
      placed.map(({ input }) => JSON.stringify(input.sender)),
      placed.map(({ input }) => trustLevel(input.sender)),
      activeTrace(),
    ],
  );
  const fresh = new Set(kept.map(({ id }) => id));
  const priorities = new Map<string, number>();
  for (const { input, sessionId, id } of placed) {
    if (fresh.has(id)) priorities.set(sessionId, priorityOf[input.sender.origin]);
  }
  for (const [sessionId, priority] of priorities) wakes.push({ sessionId, priority });
  return placed.map(({ id, sessionId }) => ({ inboxId: fresh.has(id) ? id : null, sessionId }));
}

/** Input of the system for one session. */
interface Notice {
  sessionId: string;
  /** With `account` unique: a duplicate changes nothing. */
  externalId: string;
  priority: number;
  parts: readonly Part[];
  /** JSON; null: no address. */
  replyTo: string | null;
  sender: Sender;
  mode: "steer" | "queue";
  trust: TrustLevel;
  /** The call that it is the task of. */
  task?: { turnId: string; n: number; mode: TaskMode };
}

/** Adds a row to a session's queue in the caller's transaction and returns its id. */
export async function enqueueNotice(client: PoolClient, notice: Notice): Promise<string> {
  const id = newId();
  const { sender, task } = notice;
  await client.query(
    `WITH numbered AS (UPDATE parley.sessions SET inbox_seq = inbox_seq + 1 WHERE id = $2 RETURNING inbox_seq)
     INSERT INTO parley.inbox (id, session_id, seq, channel, account, external_id, priority, parts, reply_to, sender, mode, trust,
                               parent_turn_id, parent_step, parent_mode, trace)
     SELECT $1, $2, inbox_seq, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15 FROM numbered
     ON CONFLICT (channel, account, external_id) DO NOTHING`,
    [
      id,
      notice.sessionId,
      sender.channel,
      sender.account,
      notice.externalId,
      notice.priority,
      JSON.stringify(notice.parts),
      notice.replyTo,
      JSON.stringify(sender),
      notice.mode,
      notice.trust,
      task?.turnId ?? null,
      task?.n ?? null,
      task?.mode ?? null,
      activeTrace(),
    ],
  );
  return id;
}

/** The sessions of routes; missing sessions are created with the profile of their route (null: the agent itself). */
export async function sessionsOf(
  client: PoolClient,
  profiles: ReadonlyMap<string, string | null>,
): Promise<Map<string, string>> {
  const routes = [...profiles.keys()];
  await client.query(
    `INSERT INTO parley.sessions (id, key, profile)
     SELECT w.id, w.route, w.profile FROM unnest($1::uuid[], $2::text[], $3::text[]) AS w(id, route, profile)
     WHERE NOT EXISTS (SELECT FROM parley.bindings b WHERE b.route = w.route)
       AND NOT EXISTS (SELECT FROM parley.sessions s WHERE s.key = w.route)
     ON CONFLICT (key) DO NOTHING`,
    [routes.map(() => newId()), routes, [...profiles.values()]],
  );
  const { rows } = await client.query<{ route: string; id: string }>(
    `SELECT w.route, coalesce(b.session_id, s.id) AS id FROM unnest($1::text[]) AS w(route)
     LEFT JOIN parley.bindings b ON b.route = w.route LEFT JOIN parley.sessions s ON s.key = w.route`,
    [routes],
  );
  return new Map(rows.map(({ route, id }) => [route, id]));
}
