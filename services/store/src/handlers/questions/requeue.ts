// Requeues answers that a tool-runner never fetched, because it crashed or its call was settled otherwise: the message returns to the
// queue as if no question had been asked.
import { priorityOf, type TrustLevel } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import type { ReadyHint } from "../turns/notify.ts";

/**
 * For step `n` or, if null, all steps of the turn. Adds a wake-up hint to `hints` for each session with a requeued message.
 * The caller holds the locks on those steps, so that no further answer arrives.
 */
export async function requeueUndelivered(
  client: PoolClient,
  turnId: string,
  n: number | null,
  hints: ReadyHint[],
): Promise<void> {
  const { rows } = await client.query<{ session_id: string; trust: TrustLevel }>(
    `WITH undelivered AS (
       UPDATE parley.questions SET state = 'over', answer = NULL
       WHERE turn_id = $1 AND ($2::int IS NULL OR n = $2) AND state = 'answered' AND answered_by IS NOT NULL AND NOT fetched
       RETURNING answered_by
     )
     UPDATE parley.inbox SET state = 'queued', turn_id = NULL FROM undelivered
     WHERE inbox.id = undelivered.answered_by AND inbox.turn_id = $1 AND inbox.state = 'claimed'
     RETURNING inbox.session_id, inbox.trust`,
    [turnId, n],
  );
  for (const { session_id: sessionId, trust } of rows) {
    hints.push({ sessionId, priority: priorityOf.user, steers: trust });
  }
}

/**
 * SQL condition in a statement on `parley.steps`: a tool-runner has raised a question, so answers may have to be requeued. The statement
 * cannot check for an answer itself: it may have waited for the answer's lock, and sees the state before it.
 */
export const hasRaisedQuestion = `EXISTS (
  SELECT FROM parley.questions q WHERE q.turn_id = steps.turn_id AND q.n = steps.n AND q.raised_as IS NOT NULL)`;
