// Background processes: registration, and one exit notice about their end or loss.
import type { Bus } from "@parley/bus";
import { faultPoint } from "@parley/chassis";
import { WireError } from "@parley/contracts";
import { type Database, type PoolClient } from "../../db/database.ts";
import { hashOf } from "../../grants.ts";
import { runTransaction } from "../../db/operation.ts";
import { enqueueExitNotice, type AnnouncedProcess } from "./exit-notice.ts";
import { publishReady, type ReadyHint } from "../turns/notify.ts";
import { withGrant, type Handlers, type StoreContext } from "../handler.ts";

/** Separates a replica's name from its incarnation in runner names. */
const separator = "#";

export const processHandlers = {
  async processEnd({ database, bus }, { id, key, text }) {
    const sessionId = await sessionOf(database, id, hashOf(key));
    if (sessionId === undefined) throw new WireError("NOT_FOUND", `no background process ${id} of this tool-runner`);
    return { announced: await over(database, bus, { id, sessionId, state: "ended", text }) };
  },

  async processRenew(context, { runner, key, gone = [] }) {
    const { database } = context;
    await database.query(
      "UPDATE parley.processes SET seen_at = now() WHERE runner = $1 AND key_hash = $2 AND state = 'running'",
      [runner, hashOf(key)],
    );
    const { rows } = await database.query<{ runner: string; seenAt: string }>(
      `SELECT runner, max(seen_at) AS "seenAt" FROM parley.processes WHERE state = 'running' AND runner <> $1 GROUP BY runner`,
      [runner],
    );
    const lost: { runner: string; processes: number }[] = [];
    for (const each of gone) lost.push({ runner: each.runner, processes: await markLost(context, each) });
    return { others: rows, lost };
  },

  async processList({ database }, { sessionId }) {
    const { rows } = await database.query<ListedRow>(
      `WITH RECURSIVE tree AS (
         SELECT $1::uuid AS id UNION ALL SELECT s.id FROM parley.sessions s JOIN tree ON s.parent_id = tree.id
       )
       SELECT id, session_id, runner, command, started_at FROM parley.processes
       WHERE session_id IN (SELECT id FROM tree) AND state = 'running' ORDER BY started_at LIMIT 200`,
      [sessionId],
    );
    const processes = rows.map(({ id, session_id, runner, command, started_at: startedAt }) => ({
      id,
      sessionId: session_id,
      replica: runner.slice(0, runner.lastIndexOf(separator)),
      command,
      startedAt,
    }));
    return { processes };
  },

  processBegin: withGrant(async ({ database }, { turnId, tainted }, input) => {
    const { id, runner, keyHash, command, startedAt, notify } = input;
    const { rowCount } = await database.query(
      `INSERT INTO parley.processes (id, session_id, turn_id, runner, command, started_at, notify, tainted, key_hash)
       SELECT $1, session_id, id, $3, $4, $5, $6, $7, $8 FROM parley.turns WHERE id = $2 ON CONFLICT (id) DO NOTHING`,
      [id, turnId, runner, command.toWellFormed().replaceAll("\0", ""), startedAt, notify, tainted, keyHash],
    );
    if (rowCount === 1) return {};
    const turn = await database.query("SELECT FROM parley.turns WHERE id = $1", [turnId]);
    if (turn.rowCount === 0) throw new WireError("NOT_FOUND", `no turn ${turnId}`);
    return {};
  }),

  async processTold({ database, grants }, { by, ids }) {
    const [owner, value] =
      "key" in by ? ["key_hash", hashOf(by.key)] : ["session_id", (await grants.check(by.grant)).sessionId];
    return runTransaction(database, async (client) => {
      const sessions = await client.query<{ session_id: string }>(
        `SELECT DISTINCT session_id FROM parley.processes WHERE ${owner} = $1 AND id = ANY ($2) ORDER BY session_id`,
        [value, ids],
      );
      for (const { session_id: sessionId } of sessions.rows) await lockSession(client, sessionId);
      const { rows } = await client.query<{ inbox_id: string | null }>(
        `UPDATE parley.processes SET told = true WHERE ${owner} = $1 AND id = ANY ($2) RETURNING inbox_id`,
        [value, ids],
      );
      const waiting = rows.flatMap((row) => (row.inbox_id === null ? [] : [row.inbox_id]));
      await client.query(
        "UPDATE parley.inbox SET state = 'cancelled' WHERE id = ANY ($1::uuid[]) AND state = 'queued'",
        [waiting],
      );
      return {};
    });
  },
} satisfies Partial<Handlers>;

interface ListedRow {
  id: string;
  session_id: string;
  runner: string;
  command: string;
  started_at: string;
}

/** Returns how many of a silent tool-runner's processes are lost. */
async function markLost(
  { database, bus }: StoreContext,
  { runner, seenAt }: { runner: string; seenAt: string },
): Promise<number> {
  // `seenAt` in the earlier reply has millisecond precision.
  const { rows } = await database.query<{ id: string; session_id: string; command: string }>(
    `SELECT id, session_id, command FROM parley.processes p
       WHERE runner = $1 AND state = 'running'
         AND NOT EXISTS (SELECT FROM parley.processes q WHERE q.runner = $1 AND q.state = 'running'
           AND date_trunc('milliseconds', q.seen_at) > $2::timestamptz)`,
    [runner, seenAt],
  );
  for (const { id, session_id: sessionId, command } of rows) {
    await over(database, bus, { id, sessionId, state: "lost", text: lostText(id, command) });
  }
  return rows.length;
}

async function sessionOf(database: Database, id: string, keyHash: string): Promise<string | undefined> {
  const { rows } = await database.query<{ session_id: string }>(
    "SELECT session_id FROM parley.processes WHERE id = $1 AND key_hash = $2",
    [id, keyHash],
  );
  return rows[0]?.session_id;
}

interface Over {
  id: string;
  sessionId: string;
  state: "ended" | "lost";
  text: string;
}

interface OverRow extends AnnouncedProcess {
  notify: boolean;
  told: boolean;
}

/** Returns whether an exit notice exists. The first report counts: the end of a process that was marked as lost is ignored. */
async function over(database: Database, bus: Bus, { id, sessionId, state, text }: Over): Promise<boolean> {
  const wakes: ReadyHint[] = [];
  const announced = await runTransaction(database, async (client) => {
    // Lock order: the session before its queue.
    await lockSession(client, sessionId);
    const { rows } = await client.query<OverRow>(
      "SELECT id, turn_id, tainted, notify, told FROM parley.processes WHERE id = $1 AND state = 'running' FOR UPDATE",
      [id],
    );
    const process = rows[0];
    if (process === undefined) return isAnnounced(client, id);
    const inboxId = process.notify && !process.told ? await enqueueExitNotice(client, process, text, wakes) : null;
    // A single update: a second one would lock the referenced turn after the session, against the lock order of the turn's end.
    await client.query("UPDATE parley.processes SET state = $2, ended_at = now(), inbox_id = $3 WHERE id = $1", [
      id,
      state,
      inboxId,
    ]);
    if (inboxId !== null) faultPoint("store.before_process_end");
    return inboxId !== null;
  });
  faultPoint("store.after_process_end");
  publishReady(bus, wakes);
  return announced;
}

async function lockSession(client: PoolClient, sessionId: string): Promise<void> {
  await client.query("SELECT FROM parley.sessions WHERE id = $1 FOR UPDATE", [sessionId]);
}

async function isAnnounced(client: PoolClient, id: string): Promise<boolean> {
  const { rowCount } = await client.query("SELECT FROM parley.processes WHERE id = $1 AND inbox_id IS NOT NULL", [id]);
  return rowCount === 1;
}

function lostText(id: string, command: string): string {
  return [
    `The background command ${JSON.stringify(command)} (${id}) is lost: the tool-runner that ran it stopped, and the command ended with it. Its progress is unknown and its output is lost.`,
    "Check its effects before you start it again. If somebody is waiting for it, tell them.",
  ].join("\n");
}
