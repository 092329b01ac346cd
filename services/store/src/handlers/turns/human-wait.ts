// How long a turn has waited for people: for approvals of its calls or answers to its questions.
import type { PoolClient } from "../../db/database.ts";
import { singleRow } from "../../db/operation.ts";

/**
 * Milliseconds from each question to its answer or expiry; overlapping waits count once. Includes the waits of sub-agents that the turn
 * waits for. Excludes questions of tool-runners, because their calls continue meanwhile.
 */
export async function humanWaitMs(client: PoolClient, turnId: string): Promise<number> {
  const { rows } = await client.query<{ ms: number }>({
    name: "turn-waited-for",
    text: `WITH RECURSIVE tree AS (
         SELECT $1::uuid AS id
         UNION ALL SELECT t.id FROM parley.turns t JOIN tree ON t.parent_turn_id = tree.id WHERE t.parent_mode = 'wait'
       ), waits AS (
         SELECT requested_at AS began, coalesce(decided_at, least(expires_at, now())) AS ended
         FROM parley.approvals WHERE turn_id IN (SELECT id FROM tree)
         UNION ALL
         SELECT q.asked_at, coalesce(s.finished_at, least(q.expires_at, now()))
         FROM parley.questions q JOIN parley.steps s ON s.turn_id = q.turn_id AND s.n = q.n
         WHERE q.turn_id IN (SELECT id FROM tree) AND q.raised_as IS NULL
       )
       SELECT coalesce(round(sum(extract(epoch FROM upper(span) - lower(span))) * 1000), 0)::float8 AS ms
       FROM unnest((SELECT range_agg(tstzrange(began, greatest(began, ended))) FROM waits)) AS span`,
    values: [turnId],
  });
  return singleRow(rows).ms;
}
