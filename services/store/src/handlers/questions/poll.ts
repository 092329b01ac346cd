// Questions that a tool-runner raises for a running call. They are sent to the turn's reply addresses, and only in turns of people and of
// jobs with a delivery address. The runner waits by polling; a question of a lost runner accepts no answer.
import {
  answererRole,
  sessionEvent,
  noAnswererReason,
  WireError,
  type DurableEvent,
  type Grant,
  type InputOf,
  type OutputOf,
  type ReplyAddress,
  type store,
} from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import { hashOf, operationOf } from "../../grants.ts";
import { addressOf, otherAddresses } from "../../db/mappers.ts";
import { runOperation, runTransaction } from "../../db/operation.ts";
import { lockTurn } from "../turns/end.ts";
import { announceOutgoing, enqueueText } from "../outbox/enqueue.ts";
import { requeueUndelivered } from "./requeue.ts";
import { publishReady, type ReadyHint } from "../turns/notify.ts";
import { SessionLog } from "../sessions/log.ts";
import { withGrant, type Handlers } from "../handler.ts";

type Input = InputOf<typeof store.questionRaise>;
type Output = OutputOf<typeof store.questionRaise>;

/** Maximum questions of one call, against endless loops. */
const maxRaised = 60;

export const pollHandlers = {
  questionRaise: withGrant(async ({ database, bus }, grant, input) => {
    const { turnId, n } = grant;
    let raised: { event: DurableEvent; sessionId: string; addresses: ReplyAddress[] } | undefined;
    const wakes: ReadyHint[] = [];
    const guard = { opId: operationOf(grant, input.opId), epoch: input.epoch };
    const output = await runOperation<Output>(database, guard, {
      name: "question_raise",
      async run(client) {
        const { question, options } = input;
        // Fenced by the step, not by the epoch: a call outlives a leader.
        const turn = await lockTurn(client, turnId, null);
        const callId = await heldCall(client, grant, input);
        const addresses = await addressesOf(client, turnId, turn.replyTo);
        const reason = (await whyNot(client, turnId)) ?? noAnswererReason(turn.trust, addresses.length > 0);
        if (reason !== null) return { result: { status: "nobody", reason } };
        // A new question of the call: an unfetched answer to the earlier one is requeued.
        await requeueUndelivered(client, turnId, n, wakes);
        const { rows } = await client.query<{ expires_at: string }>(
          `INSERT INTO parley.questions AS q (turn_id, n, session_id, trust, body, asked_at, expires_at, raised_as, held_until, raised)
           VALUES ($1, $2, $3, $4, $5, clock_timestamp(), now() + $6 * interval '1 millisecond', $7, now() + $8 * interval '1 millisecond', 1)
           ON CONFLICT (turn_id, n) DO UPDATE SET body = excluded.body, state = 'open', answer = NULL, answered_by = NULL, asked_at = excluded.asked_at,
             expires_at = excluded.expires_at, raised_as = excluded.raised_as, held_until = excluded.held_until, raised = q.raised + 1
           WHERE q.raised < ${maxRaised}
           RETURNING expires_at`,
          [
            turnId,
            n,
            turn.sessionId,
            answererRole(turn.trust),
            JSON.stringify({ question, options }),
            input.expiresInMs,
            input.opId,
            input.heldForMs,
          ],
        );
        const expiresAt = rows[0]?.expires_at;
        if (expiresAt === undefined) {
          return { result: { status: "nobody", reason: `this call has already asked ${maxRaised} questions` } };
        }
        const body = { callId, question, options, expiresAt };
        const seq = await new SessionLog(client, turn.sessionId, turnId).event("question.asked", body);
        const text = [question, ...options.map((option, index) => `${index + 1}. ${option}`)].join("\n");
        for (const address of addresses) {
          await enqueueText(client, turnId, { address, text, expiresInMs: input.expiresInMs });
        }
        raised = { event: { type: "question.asked", seq, turnId, ...body }, sessionId: turn.sessionId, addresses };
        const result = { status: "asked" as const, questionId: input.opId, expiresAt };
        return { result, memo: result };
      },
    });
    publishReady(bus, wakes);
    if (raised !== undefined) {
      bus.publish(sessionEvent, raised.event, { session: raised.sessionId });
      announceOutgoing(bus, raised.addresses);
    }
    return output;
  }),

  questionLook: withGrant(({ database }, { turnId, n }, { questionId, heldForMs }) => {
    return runTransaction(database, async (client) => {
      const { rows } = await client.query<OutputOf<typeof store.questionLook>>(
        `UPDATE parley.questions q
         SET held_until = now() + $4 * interval '1 millisecond',
             fetched = q.fetched OR (q.state = 'answered' AND $4 > 0),
             state = CASE
               WHEN q.state = 'open' AND ($4 = 0 OR q.expires_at <= now() OR s.result IS NOT NULL) THEN 'over'
               ELSE q.state END
         FROM parley.steps s
         WHERE q.turn_id = $1 AND q.n = $2 AND q.raised_as = $3 AND s.turn_id = q.turn_id AND s.n = q.n
         RETURNING q.state, q.answer`,
        [turnId, n, questionId, heldForMs],
      );
      return rows[0] ?? { state: "over" as const, answer: null };
    });
  }),
} satisfies Partial<Handlers>;

/** The call's id. Throws CONFLICT when the call is settled, FENCED when another runner has claimed it. */
async function heldCall(client: PoolClient, { turnId, n }: Grant, { claim }: Input): Promise<string> {
  const { rows } = await client.query<{ call_id: string; mine: boolean }>(
    // A `pure` call is never claimed.
    `SELECT call_id, state = 'intended' OR coalesce($3 = ANY (claim_hashes), false) AS mine FROM parley.steps
     WHERE turn_id = $1 AND n = $2 AND kind = 'tool' AND result IS NULL FOR UPDATE`,
    [turnId, n, hashOf(claim)],
  );
  const call = rows[0];
  if (call === undefined) throw new WireError("CONFLICT", `step ${n} of turn ${turnId} has ended`);
  if (!call.mine) throw new WireError("FENCED", `step ${n} of turn ${turnId} is claimed by another runner`);
  return call.call_id;
}

async function whyNot(client: PoolClient, turnId: string): Promise<string | null> {
  const { rows } = await client.query<{ parent: boolean; cancelled: boolean }>(
    "SELECT parent_turn_id IS NOT NULL AS parent, cancel_requested AS cancelled FROM parley.turns WHERE id = $1",
    [turnId],
  );
  if (rows[0]?.parent !== false) return "sub-agents cannot ask people";
  return rows[0].cancelled ? "the turn is being stopped" : null;
}

/** The distinct conversations that the turn answers. */
async function addressesOf(client: PoolClient, turnId: string, replyTo: string | null): Promise<ReplyAddress[]> {
  const { rows } = await client.query<{ reply_to: string | null }>(
    "SELECT reply_to FROM parley.inbox WHERE turn_id = $1 ORDER BY seq",
    [turnId],
  );
  const first = addressOf(replyTo);
  const others = otherAddresses(
    replyTo,
    rows.map((row) => row.reply_to),
  );
  return first === null ? others : [first, ...others];
}
