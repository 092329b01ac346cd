// Answers that a tool-runner was to fetch and never has: it died, or its call was settled by somebody else. What the person said goes
// back into the queue, as if nothing had been asked.
import { priorityOf } from "@parley/contracts";
import type { PoolClient } from "../database.ts";
import type { Wake } from "./report.ts";

/** Of step `n`, or of every step of the turn. The caller holds the locks on those steps, so that no further answer is given. */
export async function giveBack(client: PoolClient, turnId: string, n: number | null, wakes: Wake[]): Promise<void> {
  const { rows } = await client.query<{ session_id: string; trust: string }>(
    `WITH unheard AS (
       UPDATE parley.questions SET state = 'over', answer = NULL
       WHERE turn_id = $1 AND ($2::int IS NULL OR n = $2) AND state = 'answered' AND answered_by IS NOT NULL AND NOT fetched
       RETURNING answered_by
     )
     UPDATE parley.inbox SET state = 'queued', turn_id = NULL FROM unheard
     WHERE inbox.id = unheard.answered_by AND inbox.turn_id = $1 AND inbox.state = 'claimed'
     RETURNING inbox.session_id, inbox.trust`,
    [turnId, n],
  );
  for (const { session_id: sessionId, trust } of rows) {
    wakes.push({ sessionId, priority: priorityOf.user, steers: trust });
  }
}

/**
 * In a statement on `parley.steps`: a tool-runner has asked for it, so that `giveBack` has to look. Whether there is an answer by now
 * cannot be read here: the statement may have waited for the lock that the answer held, and sees what was there before.
 */
export const wasAsked = `EXISTS (
  SELECT FROM parley.questions q WHERE q.turn_id = steps.turn_id AND q.n = steps.n AND q.raised_as IS NOT NULL)`;
