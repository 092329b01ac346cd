// When the parts of a turn began and ended, and what its model calls were asked, from its rows.
import { WireError, type store, type TraceSpan, type TurnState, type Usage, type ViewRecord } from "@parley/contracts";
import type { Handlers } from "../handler.ts";

interface TurnRow {
  id: string;
  session_id: string;
  state: TurnState;
  received_at: string;
  started_at: string;
  finished_at: string | null;
}

/** A row of any part. Of model calls only the commit is stored: `ended_at`. */
export interface TracePart {
  kind: TraceSpan["kind"];
  name: string;
  state: string;
  started_at: string | null;
  ended_at: string | null;
  n: number | null;
  usage: string | null;
  cost_micros: number | null;
  first_token_ms: number | null;
}

interface RequestRow {
  session_id: string;
  model: string;
  message_seq: number;
  request: string | null;
  view: string | null;
  views: string[];
}

const maxParts = 500;

// The newest turn has the highest id: ids begin with the time.
const turnOf = `
  SELECT t.id, t.session_id, t.state, least(i.received_at, t.started_at) AS received_at, t.started_at, t.finished_at
  FROM parley.turns t JOIN parley.inbox i ON i.id = t.inbox_id
  WHERE $1::uuid IS NULL OR t.id = $1 ORDER BY t.id DESC LIMIT 1`;

const partsOf = `
  SELECT * FROM (
    SELECT kind, coalesce(tool, model) AS name, state, CASE kind WHEN 'tool' THEN coalesce(started_at, created_at) END AS started_at,
      CASE kind WHEN 'tool' THEN finished_at ELSE created_at END AS ended_at,
      n, usage, cost_micros, first_token_ms
    FROM parley.steps WHERE turn_id = $1
    UNION ALL
    SELECT 'approval', tool, state, requested_at, decided_at, NULL, NULL, NULL, NULL FROM parley.approvals WHERE turn_id = $1
    UNION ALL
    SELECT 'send', channel, state, created_at, settled_at, NULL, NULL, NULL, NULL FROM parley.outbox WHERE turn_id = $1
  ) AS parts ORDER BY coalesce(started_at, ended_at), ended_at LIMIT ${maxParts}`;

// The session has the newest view record only; earlier ones stand in its events.
const requestOf = `
  SELECT t.session_id, s.model, s.message_seq, s.request, sessions.view,
    ARRAY(SELECT e.body FROM parley.events e WHERE e.session_id = t.session_id AND e.type = 'compacted' ORDER BY e.seq) AS views
  FROM parley.steps s JOIN parley.turns t ON t.id = s.turn_id JOIN parley.sessions ON sessions.id = t.session_id
  WHERE s.turn_id = $1 AND s.n = $2 AND s.kind = 'model' AND s.message_seq IS NOT NULL`;

export const traceHandlers = {
  async stepRequest({ database }, { turnId, n }) {
    const row = (await database.query<RequestRow>(requestOf, [turnId, n])).rows[0];
    if (row === undefined) throw new WireError("NOT_FOUND", `turn ${turnId} has no model call ${n}`);
    const record = row.request === null ? null : (JSON.parse(row.request) as store.RequestRecord);
    return {
      sessionId: row.session_id,
      model: row.model,
      messageSeq: row.message_seq,
      record,
      view: record === null ? null : viewOf(row, record.viewVersion),
    };
  },

  async turnTrace({ database }, { turnId }) {
    const turn = (await database.query<TurnRow>(turnOf, [turnId])).rows[0];
    if (turn === undefined) throw new WireError("NOT_FOUND", turnId === null ? "no turn yet" : `no turn ${turnId}`);
    const { rows } = await database.query<TracePart>(partsOf, [turn.id]);
    return {
      turnId: turn.id,
      sessionId: turn.session_id,
      state: turn.state,
      receivedAt: turn.received_at,
      finishedAt: turn.finished_at,
      spans: [queueSpan(turn), ...spansOf(turn.started_at, rows)],
    };
  },
} satisfies Partial<Handlers>;

/** The view record of a version; null: none was in effect, or it is no longer stored. */
function viewOf({ view, views }: RequestRow, version: number): ViewRecord | null {
  const bodies = views.map((body) => (JSON.parse(body) as { view?: ViewRecord }).view);
  const known = [...bodies, view === null ? undefined : (JSON.parse(view) as ViewRecord)];
  return known.findLast((each) => each?.version === version) ?? null;
}

function queueSpan({ received_at: startedAt, started_at: endedAt }: TurnRow): TraceSpan {
  return { kind: "queue", name: "", state: "done", startedAt, endedAt, exact: true };
}

/**
 * A model call begins when the last result before it was there: at the turn's start, at the commit before it, or at the end of a tool.
 * Pure results that were stored with its own commit end at that time or earlier.
 */
export function spansOf(turnStartedAt: string, parts: readonly TracePart[]): TraceSpan[] {
  const commits = new Set(parts.filter(({ kind }) => kind === "model").map(({ ended_at }) => ended_at));
  const spans = parts.map((part): TraceSpan => {
    const { kind, name, state, ended_at: endedAt } = part;
    const usage = part.usage === null ? null : (JSON.parse(part.usage) as Usage);
    return {
      kind,
      name,
      state,
      startedAt: part.started_at ?? lastEnd(turnStartedAt, parts, endedAt),
      endedAt,
      exact: kind !== "tool" || !commits.has(endedAt),
      ...(part.n === null ? {} : { step: part.n }),
      ...(usage === null
        ? {}
        : {
            inputTokens: usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens,
            outputTokens: usage.outputTokens,
            cacheReadTokens: usage.cacheReadTokens,
            cacheWriteTokens: usage.cacheWriteTokens,
            costMicros: part.cost_micros,
          }),
      ...(part.first_token_ms === null ? {} : { firstTokenMs: part.first_token_ms }),
    };
  });
  return spans.toSorted((a, b) => a.startedAt.localeCompare(b.startedAt));
}

/** The latest end of a model or tool call before `before`. */
function lastEnd(turnStartedAt: string, parts: readonly TracePart[], before: string | null): string {
  let latest = turnStartedAt;
  for (const { kind, ended_at: end } of parts) {
    if ((kind !== "model" && kind !== "tool") || end === null || (before !== null && end >= before)) continue;
    if (end > latest) latest = end;
  }
  return latest;
}
