// Forks a session: copies its view and everything that keeps the prefix of the next prompt identical.
import {
  newId,
  sessionBound,
  threadKey,
  WireError,
  type InputOf,
  type SessionState,
  type store,
  type ViewRecord,
} from "@parley/contracts";
import { copyReferences } from "../../blobs/references.ts";
import type { PoolClient } from "../../db/database.ts";
import { overridesOf } from "../../db/mappers.ts";
import { singleRow, runOperation } from "../../db/operation.ts";
import { bindRoute } from "./routes.ts";
import { titleUntitled } from "./titles.ts";
import { summariesOf } from "./sessions.ts";
import type { Handlers } from "../handler.ts";

interface Original {
  key: string;
  title: string | null;
  seq: number;
  overrides: string | null;
  view: string | null;
  prefix_hash: string | null;
}

export const forkHandlers = {
  async sessionFork({ database, bus }, input) {
    await titleUntitled(database);
    const { opId, sessionId, route } = input;
    const { id } = await runOperation<{ id: string }>(
      database,
      { opId, epoch: null, lockSession: sessionId },
      {
        name: "session_fork",
        async run(client, locked) {
          if (locked === undefined) throw new WireError("NOT_FOUND", `there is no session ${sessionId}`);
          const copied = { id: await copy(client, input) };
          return { result: copied, memo: copied };
        },
      },
    );
    const session = singleRow(await summariesOf(database, [id]));
    if (route !== undefined) bus.publish(sessionBound, { route, sessionId: id, seq: session.seq });
    return { session };
  },
} satisfies Partial<Handlers>;

/** The overrides without what a program defines in its own session. */
function overridesOfCopy(stored: string | null): string {
  const { programTools: _tools, programAgents: _agents, ...kept } = overridesOf(stored);
  return JSON.stringify({ ...kept, start: "fork" });
}

async function copy(client: PoolClient, input: InputOf<typeof store.sessionFork>): Promise<string> {
  const { sessionId, route } = input;
  const original = singleRow(
    (
      await client.query<Original>(
        "SELECT key, title, seq, overrides, view, prefix_hash FROM parley.sessions WHERE id = $1",
        [sessionId],
      )
    ).rows,
  );
  const atSeq = Math.min(input.atSeq ?? original.seq, original.seq);
  const kept = original.view === null ? null : (JSON.parse(original.view) as NonNullable<SessionState["view"]>);
  const view = viewAt(kept, atSeq);
  const id = newId();
  const title = input.title ?? (original.title === null ? null : `${original.title.slice(0, 190)} (fork)`);
  await client.query(
    `INSERT INTO parley.sessions (id, key, title, title_tainted, profile, overrides, view, view_version, prefix_hash, seq, todos)
     SELECT $2, $3, $4, title_tainted AND $9, profile, $10, $5, $6, $7, $8, CASE WHEN $8 >= seq THEN todos END
     FROM parley.sessions WHERE id = $1`,
    [
      sessionId,
      id,
      threadKey(route ?? original.key, id),
      title,
      view === null ? null : JSON.stringify(view),
      view?.version ?? 0,
      view === kept ? original.prefix_hash : null,
      atSeq,
      input.title === undefined,
      overridesOfCopy(original.overrides),
    ],
  );
  await copyTurns(client, { from: sessionId, to: id, atSeq, view });
  await copyReferences(client, sessionId, id);
  if (route !== undefined) await bindRoute(client, route, id);
  return id;
}

/** If the fork ends before the view record was made, the whole log is shown, except reasoning signed over an earlier prompt. */
function viewAt(record: ViewRecord | null, atSeq: number): ViewRecord | null {
  if (record === null || atSeq >= (record.madeAtSeq ?? record.fromSeq)) return record;
  return {
    version: 1,
    keepFirstTo: 0,
    fromSeq: 0,
    summary: null,
    lastRequest: null,
    clearedBefore: 0,
    madeAtSeq: atSeq + 1,
    trigger: "fork",
    strategy: "fork",
  };
}

/**
 * Copies complete ended turns, so that every call in the copy has its result. The copy has its own turns, because the original may be
 * deleted, and no cost, which belongs to the original.
 */
async function copyTurns(
  client: PoolClient,
  { from, to, atSeq, view }: { from: string; to: string; atSeq: number; view: ViewRecord | null },
): Promise<void> {
  const { rows } = await client.query<{ id: string }>(
    `SELECT t.id FROM parley.turns t JOIN parley.messages m ON m.turn_id = t.id AND m.session_id = t.session_id
     WHERE t.session_id = $1 AND t.state <> 'running' GROUP BY t.id HAVING max(m.seq) <= $2
       AND bool_or(m.seq <= $3 OR m.seq >= $4)`,
    [from, atSeq, view?.keepFirstTo ?? 0, view?.fromSeq ?? 0],
  );
  const originals = rows.map(({ id }) => id);
  const copies = originals.map(() => newId());
  await client.query(
    `INSERT INTO parley.turns (id, session_id, inbox_id, state, epoch, attempts, reply_to, next_step, model_steps, exit_reason, answer,
                               started_at, claimed_at, finished_at, trust)
     SELECT pair.copy, $1, t.inbox_id, t.state, t.epoch, t.attempts, t.reply_to, t.next_step, t.model_steps, t.exit_reason, t.answer,
            t.started_at, t.claimed_at, t.finished_at, t.trust
     FROM unnest($2::uuid[], $3::uuid[]) AS pair (original, copy) JOIN parley.turns t ON t.id = pair.original`,
    [to, originals, copies],
  );
  const { rowCount } = await client.query(
    `INSERT INTO parley.messages (session_id, seq, turn_id, role, parts, model, created_at, sender, tainted, sent_at)
     SELECT $1, m.seq, pair.copy, m.role, m.parts, m.model, m.created_at, m.sender, m.tainted, m.sent_at
     FROM unnest($2::uuid[], $3::uuid[]) AS pair (original, copy)
     JOIN parley.messages m ON m.session_id = $4 AND m.turn_id = pair.original
     WHERE m.seq <= $5 OR m.seq >= $6`,
    [to, originals, copies, from, view?.keepFirstTo ?? 0, view?.fromSeq ?? 0],
  );
  await client.query("UPDATE parley.sessions SET message_count = $2 WHERE id = $1", [to, rowCount ?? 0]);
  await copyCheckpoints(client, { to, originals, copies });
}

/**
 * The copied turns keep the states of files and documents before their changes, so that the copy can be rewound too. Rewinds are not
 * copied: they are changes of the original.
 */
async function copyCheckpoints(
  client: PoolClient,
  { to, originals, copies }: { to: string; originals: readonly string[]; copies: readonly string[] },
): Promise<void> {
  const pairs = "unnest($1::uuid[], $2::uuid[]) AS pair (original, copy)";
  // Versions of documents name their turn, which belongs to the original.
  const written = `
    SELECT pair.copy AS checkpoint_id, d.path, min(d.version) - 1 AS version
    FROM ${pairs} JOIN parley.turns t ON coalesce(t.root_turn_id, t.id) = pair.original
    JOIN parley.documents d ON d.turn_id = t.id GROUP BY pair.copy, d.path`;
  await client.query(
    `WITH written AS (${written})
     INSERT INTO parley.checkpoints (id, session_id, kind, at)
     SELECT pair.copy, $3, 'turn', t.started_at FROM ${pairs} JOIN parley.turns t ON t.id = pair.original
     WHERE EXISTS (SELECT FROM parley.checkpoints c WHERE c.id = pair.original)
       OR EXISTS (SELECT FROM written WHERE written.checkpoint_id = pair.copy)`,
    [originals, copies, to],
  );
  await client.query(
    `INSERT INTO parley.checkpoint_files (checkpoint_id, path, kind, sha256, size, mode, reason)
     SELECT pair.copy, f.path, f.kind, f.sha256, f.size, f.mode, f.reason
     FROM ${pairs} JOIN parley.checkpoint_files f ON f.checkpoint_id = pair.original ORDER BY f.n`,
    [originals, copies],
  );
  await client.query(
    `INSERT INTO parley.checkpoint_documents (checkpoint_id, path, version)
     SELECT checkpoint_id, path, min(version) FROM (
       SELECT pair.copy AS checkpoint_id, d.path, d.version
       FROM ${pairs} JOIN parley.checkpoint_documents d ON d.checkpoint_id = pair.original
       UNION ALL ${written}
     ) AS kept GROUP BY checkpoint_id, path`,
    [originals, copies],
  );
}
