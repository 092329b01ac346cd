// Data about a claimed turn, new or resumed: the history its leader does not have, its parent, its root turn, and the cost of the tree.
import {
  widestAnswerer,
  type ApprovalAnswerer,
  type ClaimedTurn,
  type Cost,
  type InputOf,
  type OutputOf,
  type SessionState,
  type store,
  type TaskMode,
  type TrustLevel,
} from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import { addressOf, senderOf } from "../../db/mappers.ts";
import { singleRow } from "../../db/operation.ts";

export type Claim = OutputOf<typeof store.turnClaim>;
export type ClaimInput = InputOf<typeof store.turnClaim>;

/** Position after which messages are read: earlier ones are known to the leader or no longer part of the view. */
export function visibleAfter({ knownSeq }: ClaimInput, { view }: SessionState): number {
  return Math.max(knownSeq, view === null ? 0 : view.fromSeq - 1);
}

export function parentOf(row: {
  parent_turn_id: string | null;
  parent_step: number | null;
  parent_mode: TaskMode | null;
}) {
  const { parent_turn_id: turnId, parent_step: n, parent_mode: mode } = row;
  return turnId === null || n === null || mode === null ? null : { turnId, n, mode };
}

export async function rootOf(client: PoolClient, turnId: string): Promise<ClaimedTurn["root"]> {
  const { rows } = await client.query<{ trust: TrustLevel; reply_to: string | null; key: string }>(
    "SELECT trust, reply_to, key FROM parley.turns JOIN parley.sessions ON sessions.id = session_id WHERE turns.id = $1",
    [turnId],
  );
  const { trust, reply_to: replyTo, key: sessionKey } = singleRow(rows);
  const inputs = await client.query<{ channel: string; account: string; approvals: ApprovalAnswerer }>(
    `SELECT DISTINCT channel, account, coalesce(sender::jsonb ->> 'approvals', 'sender') AS approvals
     FROM parley.inbox WHERE turn_id = $1`,
    [turnId],
  );
  return {
    turnId,
    trust,
    replyTo: addressOf(replyTo),
    sessionKey,
    approvals: widestAnswerer(inputs.rows.map(({ approvals }) => approvals)),
    ...webhookOf(inputs.rows),
  };
}

/** Whether a caller waits for the answer, and what it requires of it. `sender`: of the turn's only input. */
export function exclusiveOf(exclusive: boolean, sender: string | undefined): Pick<ClaimedTurn, "exclusive" | "answer"> {
  if (!exclusive) return {};
  const answer = sender === undefined ? undefined : senderOf(sender).answer;
  return { exclusive, ...(answer === undefined ? {} : { answer }) };
}

/** The webhook that sent all input of a turn, as a field of `root`; no field for other or several sources. */
export function webhookOf(inputs: readonly { channel: string; account: string }[]): { webhook?: string } {
  const [first] = inputs;
  const isOne = inputs.every(({ channel, account }) => channel === "hook" && account === first?.account);
  return first !== undefined && isOne ? { webhook: first.account } : {};
}

export async function treeCost(client: PoolClient, rootTurnId: string): Promise<Cost> {
  const { rows } = await client.query<Cost>(
    `SELECT coalesce(sum(cost_micros), 0)::bigint AS micros, coalesce(sum(unpriced_calls), 0)::int AS "unpricedCalls"
     FROM parley.turns WHERE id = $1 OR root_turn_id = $1`,
    [rootTurnId],
  );
  return singleRow(rows);
}

/** What a session had used before a turn, as a field of the claimed turn; no field if it was not requested. */
export async function earlierUse(
  client: PoolClient,
  { withEarlier = false, sessionId }: ClaimInput,
  turnId: string,
): Promise<Pick<ClaimedTurn, "earlier">> {
  if (!withEarlier) return {};
  const { rows } = await client.query<NonNullable<ClaimedTurn["earlier"]>>(
    `WITH RECURSIVE tree AS (
       SELECT id, cost_micros FROM parley.sessions WHERE id = $1
       UNION ALL
       SELECT c.id, c.cost_micros FROM parley.sessions c JOIN tree ON c.parent_id = tree.id
     )
     SELECT greatest(0, (SELECT sum(cost_micros) FROM tree)
              - (SELECT coalesce(sum(cost_micros), 0) FROM parley.turns WHERE id = $2 OR root_turn_id = $2))::bigint AS "costMicros",
            (SELECT coalesce(sum(model_steps), 0) FROM parley.turns WHERE session_id = $1 AND id <> $2)::int AS "modelCalls"`,
    [sessionId, turnId],
  );
  return { earlier: singleRow(rows) };
}
