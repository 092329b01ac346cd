// The inbox: what came in, once, in the order of its session. What becomes of it is the business of turns.
import { faultPoint } from "@parley/chassis";
import { inboxReady, newId, priorityOf, type store, WireError, type InputOf, type OutputOf } from "@parley/contracts";
import type { Bus } from "@parley/bus";
import { withClient, type Database, type PoolClient } from "../database.ts";
import { turnColumns, turnOf, type TurnRow } from "../rows.ts";
import { only, transact } from "../transaction.ts";

interface PutRow {
  id: string | null;
  session_id: string;
}

// The session's row is locked until the commit, so rows of one session get their numbers in commit order.
const insert = {
  name: "inbox-put",
  text: `
    WITH session AS (
      INSERT INTO parley.sessions (id, key) VALUES ($9, $1)
      ON CONFLICT (key) DO UPDATE SET inbox_seq = sessions.inbox_seq + 1
      RETURNING id, inbox_seq
    ), row AS (
      INSERT INTO parley.inbox (id, session_id, seq, channel, account, external_id, priority, parts, reply_to, sender)
      SELECT $10, id, inbox_seq, $2, $3, $4, $5, $6, $7, $8 FROM session
      ON CONFLICT (channel, account, external_id) DO NOTHING
      RETURNING id
    )
    SELECT (SELECT id FROM row) AS id, session.id AS session_id FROM session`,
};

const find = {
  name: "inbox-find",
  text: "SELECT id, session_id, parts = $4 AS same FROM parley.inbox WHERE channel = $1 AND account = $2 AND external_id = $3",
};

export async function put(
  database: Database,
  bus: Bus,
  { message, sessionKey, lease }: InputOf<typeof store.inboxPut>,
): Promise<OutputOf<typeof store.inboxPut>> {
  faultPoint("store.before_inbox");
  const identity = [message.channel, message.account, message.externalId];
  const parts = JSON.stringify(message.parts);
  const priority = priorityOf[message.origin];
  const write = async (client: PoolClient) => {
    const { rows } = await client.query<PutRow>({
      ...insert,
      values: [
        sessionKey,
        ...identity,
        priority,
        parts,
        message.replyTo === null ? null : JSON.stringify(message.replyTo),
        JSON.stringify({
          contact: message.contact,
          role: message.role,
          conversation: message.conversation,
          origin: message.origin,
        }),
        newId(),
        newId(),
      ],
    });
    const row = only(rows);
    if (row.id !== null) return { row, duplicate: false, same: true };
    const known = only(
      (await client.query<PutRow & { same: boolean }>({ ...find, values: [...identity, parts] })).rows,
    );
    return { row: known, duplicate: true, same: known.same };
  };
  const { row, duplicate, same } =
    lease === undefined
      ? await withClient(database, write)
      : await transact(database, async (client) => {
          await saveCursor(client, lease);
          return write(client);
        });
  faultPoint("store.after_inbox");
  if (!duplicate) bus.publish(inboxReady, { sessionId: row.session_id, priority });
  return { inboxId: row.id ?? "", sessionId: row.session_id, duplicate, same };
}

async function saveCursor(client: PoolClient, lease: { name: string; fence: number; cursor: string }): Promise<void> {
  const { rowCount } = await client.query("UPDATE parley.leases SET cursor = $3 WHERE name = $1 AND fence = $2", [
    lease.name,
    lease.fence,
    lease.cursor,
  ]);
  if (rowCount !== 1) throw new WireError("FENCED", `lease ${lease.name}: fence ${lease.fence} is over`);
}

export async function get(
  database: Database,
  { inboxId }: InputOf<typeof store.inboxGet>,
): Promise<OutputOf<typeof store.inboxGet>> {
  return withClient(database, async (client) => {
    const { rows } = await client.query<{
      state: OutputOf<typeof store.inboxGet>["state"];
      session_id: string;
      turn_id: string | null;
    }>({
      name: "inbox-get",
      text: "SELECT state, session_id, turn_id FROM parley.inbox WHERE id = $1",
      values: [inboxId],
    });
    const row = rows[0];
    if (row === undefined) throw new WireError("NOT_FOUND", `no message ${inboxId}`);
    if (row.turn_id === null) return { state: row.state, sessionId: row.session_id, turn: null };
    const turn = await client.query<TurnRow>(`SELECT ${turnColumns} FROM parley.turns WHERE id = $1`, [row.turn_id]);
    return { state: row.state, sessionId: row.session_id, turn: turnOf(only(turn.rows)) };
  });
}

const pendingSessions = {
  name: "inbox-pending",
  text: `
    SELECT session_id AS "sessionId", min(priority)::int AS priority, bool_or(resume) AS resume FROM (
      SELECT session_id, priority, false AS resume FROM parley.inbox
      WHERE state = 'queued'
        AND NOT EXISTS (SELECT FROM parley.turns WHERE turns.session_id = inbox.session_id AND turns.state = 'running')
      UNION ALL
      SELECT session_id, 1, true FROM parley.turns WHERE state = 'running' AND epoch <= $1
    ) AS work
    GROUP BY session_id ORDER BY resume DESC, priority LIMIT $2`,
};

export async function pending(
  database: Database,
  { epoch, limit }: InputOf<typeof store.inboxPending>,
): Promise<OutputOf<typeof store.inboxPending>> {
  return withClient(database, async (client) => {
    const { rows } = await client.query<{ sessionId: string; priority: number; resume: boolean }>({
      ...pendingSessions,
      values: [epoch, limit],
    });
    return { sessions: rows };
  });
}
