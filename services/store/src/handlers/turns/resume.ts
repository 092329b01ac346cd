// Loads a running turn for a claim, after a leader change or a lost claim reply: its open calls, usage and cost, and whether queued
// input may join it.
import type { ClaimedTurn, TaskMode, TrustLevel } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import {
  addressOf,
  openSteps,
  otherAddresses,
  sessionStateOf,
  spentOf,
  type SessionStateRow,
  type SpentRow,
} from "../../db/mappers.ts";
import { singleRow, type Outcome } from "../../db/operation.ts";
import { grantedIn } from "../questions/approvals.ts";
import {
  earlierUse,
  exclusiveOf,
  parentOf,
  rootOf,
  visibleAfter,
  treeCost,
  type Claim,
  type ClaimInput,
} from "./claim-result.ts";
import { historyBytes, newest } from "../sessions/history.ts";
import { humanWaitMs } from "./human-wait.ts";

interface ResumedRow extends SessionStateRow, SpentRow {
  session_id: string;
  key: string;
  inbox_id: string;
  reply_to: string | null;
  trust: TrustLevel;
  exclusive: boolean;
  parent_turn_id: string | null;
  parent_step: number | null;
  parent_mode: TaskMode | null;
  root_turn_id: string | null;
  attempts: number;
  next_step: number;
  model_steps: number;
  cancel_requested: boolean;
  started_at: string;
}

/** Read-only. */
export async function resume(client: PoolClient, input: ClaimInput, turnId: string): Promise<Outcome<Claim>> {
  const found = await client.query<ResumedRow>(
    `SELECT t.*, s.key, s.view, s.overrides, s.profile, s.parent_id, s.depth, s.prefix_hash
     FROM parley.turns t JOIN parley.sessions s ON s.id = t.session_id WHERE t.id = $1`,
    [turnId],
  );
  const row = singleRow(found.rows);
  const openCalls = await openSteps(client, turnId);
  const taken = await client.query<{ id: string; reply_to: string | null; trace: string | null; sender: string }>(
    "SELECT id, reply_to, trace, sender FROM parley.inbox WHERE turn_id = $1 ORDER BY seq",
    [turnId],
  );
  const state = sessionStateOf(row);
  const turn: ClaimedTurn = {
    turnId,
    sessionId: row.session_id,
    sessionKey: row.key,
    replyTo: addressOf(row.reply_to),
    alsoTo: otherAddresses(
      row.reply_to,
      taken.rows.map((each) => each.reply_to),
    ),
    inboxIds: taken.rows.map((each) => each.id),
    trust: row.trust,
    ...exclusiveOf(row.exclusive, taken.rows[0]?.sender),
    root: await rootOf(client, row.root_turn_id ?? turnId),
    parent: parentOf(row),
    ...spentOf(row),
    treeCost: await treeCost(client, row.root_turn_id ?? turnId),
    ...(await earlierUse(client, input, turnId)),
    granted: await grantedIn(client, turnId),
    trace: taken.rows.find((each) => each.trace !== null)?.trace ?? null,
    attempt: row.attempts,
    nextStep: row.next_step,
    modelSteps: row.model_steps,
    openSteps: openCalls,
    cancelRequested: row.cancel_requested,
    startedAt: row.started_at,
    waitedMs: await humanWaitMs(client, turnId),
  };
  const steerable = await client.query(
    "SELECT FROM parley.inbox WHERE session_id = $1 AND state = 'queued' AND mode = 'steer' AND trust = $2 AND parent_turn_id IS NULL AND NOT exclusive AND NOT $3 LIMIT 1",
    [row.session_id, row.trust, row.exclusive],
  );
  // The reply contains undelivered results in addition to the history: together they must fit.
  const openBytes = openCalls.reduce(
    (sum, { input, result, approval }) =>
      sum +
      Buffer.byteLength(input) +
      Buffer.byteLength(result?.content ?? "") +
      Buffer.byteLength(approval?.authorization?.input ?? "") +
      Buffer.byteLength(approval?.updatedInput ?? ""),
    0,
  );
  const history = await newest(client, row.session_id, {
    afterSeq: visibleAfter(input, state),
    bytes: historyBytes - openBytes,
  });
  return {
    result: {
      status: "resumed",
      turn,
      session: state,
      steerable: steerable.rowCount === 1,
      messages: history.messages,
      gap: history.gap,
    },
    memo: { status: "resumed", turnId },
  };
}
