// Sessions and their logs: summaries, overrides, views and events.
import {
  type Cost,
  DurableEventSchema,
  sessionUpdated,
  type store,
  WireError,
  type DurableEvent,
  type InputOf,
  type OutputOf,
  type SessionOverrides,
  type SessionSummary,
  type Usage,
} from "@parley/contracts";
import { and, eq, inArray, or, sql } from "drizzle-orm";
import { withClient, type Database } from "../../db/database.ts";
import {
  finishedEvent,
  messageColumns,
  messageOf,
  overridesOf,
  sessionStateColumns,
  sessionStateOf,
  turnOf,
  type MessageRow,
  type SessionStateRow,
  type TurnRow,
} from "../../db/mappers.ts";
import { inbox, sessions, turns } from "../../db/schema/index.ts";
import { runChange } from "../../db/operation.ts";
import { historyBytes, newest } from "./history.ts";
import type { Handlers } from "../handler.ts";
import { titleUntitled } from "./titles.ts";
import { loggedSummary } from "./compact.ts";

/** A session's cost including its sub-agents, as JSON with the field names of the contracts. */
function treeCost() {
  return sql<SessionSummary["treeCost"]>`(
    WITH RECURSIVE tree AS (
      SELECT c.id, c.cost_micros, c.unpriced_calls FROM parley.sessions c WHERE c.id = ${sessions.id}
      UNION ALL
      SELECT c.id, c.cost_micros, c.unpriced_calls FROM parley.sessions c JOIN tree ON c.parent_id = tree.id
    )
    SELECT json_build_object('micros', sum(cost_micros)::bigint, 'unpricedCalls', sum(unpriced_calls)::int) FROM tree)`;
}

const summary = {
  sessionId: sessions.id,
  key: sessions.key,
  title: sessions.title,
  titleTainted: sessions.titleTainted,
  status: sessions.status,
  parentId: sessions.parentId,
  profile: sessions.profile,
  overrides: sessions.overrides,
  costMicros: sessions.costMicros,
  unpricedCalls: sessions.unpricedCalls,
  treeCost: treeCost(),
  seq: sessions.seq,
  messageCount: sessions.messageCount,
  inputTokens: sessions.inputTokens,
  outputTokens: sessions.outputTokens,
  cacheReadTokens: sessions.cacheReadTokens,
  cacheWriteTokens: sessions.cacheWriteTokens,
  queued: sql<number>`(SELECT count(*)::int FROM ${inbox} WHERE ${inbox.sessionId} = ${sessions.id} AND ${inbox.state} = 'queued')`,
  createdAt: sessions.createdAt,
  updatedAt: sessions.updatedAt,
  runningTurnId: turns.id,
  parked: sql<boolean>`coalesce(${turns.parked}, false)`,
  todos: sessions.todos,
};

export function selectSummaries(database: Database) {
  return database.orm
    .select(summary)
    .from(sessions)
    .leftJoin(turns, and(eq(turns.sessionId, sessions.id), eq(turns.state, "running")));
}

type Row = Awaited<ReturnType<typeof selectSummaries>>[number];

export function summaryOf(row: Row): SessionSummary {
  const {
    inputTokens,
    outputTokens,
    cacheReadTokens,
    cacheWriteTokens,
    costMicros,
    unpricedCalls,
    todos,
    titleTainted,
    ...rest
  } = row;
  return {
    ...rest,
    ...(titleTainted ? { titleTainted } : {}),
    overrides: shownOverrides(row.overrides),
    cost: { micros: costMicros, unpricedCalls },
    usage: { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens },
    ...(todos === null ? {} : { todos }),
  };
}

/** Without definitions of tools and sub-agents, which can be long: a list of sessions must fit on the bus; and without internal marks. */
function shownOverrides(overrides: SessionOverrides | null): SessionOverrides {
  if (overrides === null) return {};
  const { programTools: _, programAgents: __, programAgent: ___, start: ____, ...shown } = overrides;
  return shown;
}

async function getSession(
  database: Database,
  input: InputOf<typeof store.sessionGet>,
): Promise<OutputOf<typeof store.sessionGet>> {
  if ((input.sessionId === undefined) === (input.key === undefined)) {
    throw new WireError("INVALID_INPUT", "set either sessionId or key");
  }
  const bound = sql`(SELECT session_id FROM parley.bindings WHERE route = ${input.key ?? ""})`;
  const condition =
    input.sessionId === undefined
      ? or(eq(sessions.id, bound), and(eq(sessions.key, input.key ?? ""), sql`NOT EXISTS ${bound}`))
      : eq(sessions.id, input.sessionId);
  const read = async (): Promise<SessionSummary | null> => {
    const [row] = await selectSummaries(database).where(condition);
    return row === undefined ? null : summaryOf(row);
  };
  const session = await read();
  if (session === null || session.title !== null || session.parentId !== null || session.messageCount === 0)
    return { session };
  await titleUntitled(database);
  return { session: await read() };
}

/** Sessions by their ids, in that order; missing ones are left out. */
export async function summariesOf(database: Database, ids: readonly string[]): Promise<SessionSummary[]> {
  if (ids.length === 0) return [];
  const rows = await selectSummaries(database).where(inArray(sessions.id, [...ids]));
  const found = new Map(rows.map((row) => [row.sessionId, summaryOf(row)]));
  return ids.flatMap((id) => found.get(id) ?? []);
}

/** Applies a patch to the overrides: null removes one. */
function patched(overrides: SessionOverrides, patch: OverridesPatch): SessionOverrides {
  return Object.fromEntries(Object.entries({ ...overrides, ...patch }).filter(([, value]) => value !== null));
}

type SessionUpdate = InputOf<typeof store.sessionUpdate>;
type OverridesPatch = NonNullable<SessionUpdate["overrides"]>;

/** Adds or removes rules of one list; a list without rules is removed. */
function withRules(overrides: SessionOverrides, { list, action, rules }: NonNullable<SessionUpdate["rules"]>) {
  const old = overrides[list] ?? [];
  const changed = action === "add" ? [...new Set([...old, ...rules])] : old.filter((rule) => !rules.includes(rule));
  return patched(overrides, { [list]: changed.length === 0 ? null : changed });
}

export const sessionHandlers = {
  async sessionUpdate({ database, bus }, { opId, sessionId, title, status, overrides: patch, rules }) {
    await runChange(database, "session_update", opId, async (client) => {
      const { rows } = await client.query<{ overrides: string | null; used: boolean }>(
        "SELECT overrides, seq > 0 OR inbox_seq > 0 AS used FROM parley.sessions WHERE id = $1 FOR UPDATE",
        [sessionId],
      );
      const [row] = rows;
      if (row === undefined) return {};
      const before = overridesOf(row.overrides);
      const changed = patched(before, patch ?? {});
      // Checkpoints contain paths relative to the workspace.
      if (row.used && changed.workspace !== before.workspace) {
        throw new WireError("CONFLICT", "the workspace of a session is chosen before its first message");
      }
      const overrides =
        patch === undefined && rules === undefined
          ? row.overrides
          : JSON.stringify(rules === undefined ? changed : withRules(changed, rules));
      await client.query(
        `UPDATE parley.sessions SET title = coalesce($2, title), title_tainted = title_tainted AND $2::text IS NULL,
           status = coalesce($3, status), overrides = $4 WHERE id = $1`,
        [sessionId, title ?? null, status ?? null, overrides],
      );
      return {};
    });
    bus.publish(sessionUpdated, { sessionId });
    return getSession(database, { sessionId });
  },

  async sessionView({ database }, { sessionId, knownSeq }) {
    return withClient(database, async (client) => {
      const { rows } = await client.query<SessionStateRow & { key: string; busy: boolean; turn_id: string | null }>(
        `SELECT key, ${sessionStateColumns},
           EXISTS (SELECT FROM parley.turns WHERE session_id = s.id AND state = 'running') AS busy,
           (SELECT turn_id FROM parley.messages WHERE session_id = s.id ORDER BY seq DESC LIMIT 1) AS turn_id
         FROM parley.sessions s WHERE id = $1`,
        [sessionId],
      );
      const row = rows[0];
      if (row === undefined) throw new WireError("NOT_FOUND", `there is no session ${sessionId}`);
      const session = sessionStateOf(row);
      const shownFrom = session.view === null ? 0 : session.view.fromSeq - 1;
      const { messages, gap } = await newest(client, sessionId, { afterSeq: Math.max(knownSeq, shownFrom) });
      return { sessionKey: row.key, session, busy: row.busy, turnId: row.turn_id, messages, gap };
    });
  },

  sessionGet: ({ database }, input) => getSession(database, input),

  /** The session's log: messages and events in sequence order. */
  async eventList({ database }, input) {
    const page = await database.query<MessageRow & { fits: boolean; kind: DurableEvent["type"]; usage: string | null }>(
      `SELECT *, (row_number() OVER w = 1 OR sum(size) OVER w <= $4) AS fits,
         CASE WHEN role = 'assistant' THEN (
           SELECT usage FROM parley.steps s WHERE s.turn_id = page.turn_id AND s.message_seq = page.seq AND s.kind = 'model'
         ) END AS usage
       FROM (
         SELECT * FROM (
           SELECT 'message' AS kind, ${messageColumns}, octet_length(parts) AS size
           FROM parley.messages WHERE session_id = $1 AND seq > $2
           UNION ALL
           SELECT e.type, e.seq, NULL, e.turn_id, coalesce(e.body, ''), NULL, NULL, NULL, e.created_at, NULL, octet_length(coalesce(e.body, t.answer, ''))
           FROM parley.events e LEFT JOIN parley.turns t ON t.id = e.turn_id WHERE e.session_id = $1 AND e.seq > $2
         ) AS log ORDER BY seq LIMIT $3 + 1
       ) AS page WINDOW w AS (ORDER BY seq) ORDER BY seq`,
      [input.sessionId, input.afterSeq, input.limit, historyBytes],
    );
    const fitting = page.rows.slice(0, input.limit).filter((row) => row.fits);
    const ended = fitting.filter((row) => row.kind === "turn.finished").map((row) => row.turn_id);
    const ends = await database.query<TurnRow>("SELECT * FROM parley.turns WHERE id = ANY($1::uuid[])", [ended]);
    const turnById = new Map(ends.rows.map((row) => [row.id, turnOf(row)]));
    const subagents = await database.query<Cost & { root: string }>(
      `SELECT root_turn_id AS root, sum(cost_micros)::bigint AS micros, sum(unpriced_calls)::int AS "unpricedCalls"
       FROM parley.turns WHERE root_turn_id = ANY($1::uuid[]) GROUP BY root_turn_id`,
      [ended],
    );
    const subagentsOf = new Map(subagents.rows.map((row) => [row.root, row]));
    const found = fitting.flatMap<DurableEvent>((row) => {
      if (row.kind === "message") {
        const usage = row.usage === null ? {} : { usage: JSON.parse(row.usage) as Usage };
        return [{ type: "message", seq: row.seq, message: messageOf(row), ...usage }];
      }
      if (row.kind !== "turn.finished") {
        const body = { ...(JSON.parse(row.parts) as object), ...loggedSummary(row) };
        return [DurableEventSchema.parse({ type: row.kind, seq: row.seq, turnId: row.turn_id, ...body })];
      }
      const turn = turnById.get(row.turn_id);
      return turn === undefined ? [] : [finishedEvent(row.seq, turn, subagentsOf.get(row.turn_id))];
    });
    return { events: found, more: fitting.length < page.rows.length };
  },
} satisfies Partial<Handlers>;
