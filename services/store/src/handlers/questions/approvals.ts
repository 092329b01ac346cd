// Approval questions about one exact tool call: stored with their messages, decided once, and expiring.
import {
  priorityOf,
  sessionEvent,
  WireError,
  type Approval,
  type DurableEvent,
  type InputOf,
  type OutputOf,
  store,
} from "@parley/contracts";
import { omitUndefined } from "@parley/kit";
import { type PoolClient } from "../../db/database.ts";
import { runChange, runOperation, singleRow } from "../../db/operation.ts";
import { lockTurn } from "../turns/end.ts";
import { ownerAddress } from "../outbox/owner-address.ts";
import { announceOutgoing, enqueueText } from "../outbox/enqueue.ts";
import { unpark, publishReady } from "../turns/notify.ts";
import { SessionLog } from "../sessions/log.ts";
import type { Handlers } from "../handler.ts";

/** True while a decision has an effect: not expired, and the call still waits. */
const isOpen = `(expires_at > now() AND EXISTS (
    SELECT FROM parley.steps s JOIN parley.turns t ON t.id = s.turn_id
    WHERE s.turn_id = approvals.turn_id AND s.n = approvals.n AND s.result IS NULL AND t.state = 'running'))`;

/** False when the approval can apply to this one call only, for example because an ask rule requires it each time. */
const mayAlways =
  "(authorization_json IS NULL OR coalesce(authorization_json::jsonb -> 'always' <> 'null'::jsonb, false))";

const columns = `id, session_id AS "sessionId", turn_id AS "turnId", n, tool, summary, reason,
  ${mayAlways} AS "mayAlways", always,
  CASE WHEN state = 'pending' AND NOT ${isOpen} THEN 'expired' ELSE state END AS state,
  requested_at AS "requestedAt", expires_at AS "expiresAt", decided_by AS "decidedBy"`;

type ListedApproval = OutputOf<typeof store.approvalList>["approvals"][number];

export const approvalHandlers = {
  async approvalRequest({ database, bus }, input) {
    const notified = input.outgoing.map((outgoing) => outgoing.address);
    const output = await runOperation<OutputOf<typeof store.approvalRequest>>(database, input, {
      name: "approval_request",
      async run(client) {
        const { turnId, n } = input;
        const turn = await lockTurn(client, turnId, input.epoch);
        const known = await find(client, "turn_id = $1 AND n = $2 AND call_hash = $3", [turnId, n, input.callHash]);
        if (known !== undefined) return { result: { approval: known, seq: null } };
        const owner = input.toOwner === undefined ? null : await ownerAddress(client);
        if (input.ownerOnly === true && owner === null) return { result: { approval: null, seq: null } };
        const { rows } = await client.query<Approval>(
          `INSERT INTO parley.approvals (id, session_id, turn_id, n, tool, call_hash, summary, reason, expires_at, input, grants, authorization_json)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, now() + $9 * interval '1 millisecond', $10, $11, $12)
           ON CONFLICT (id) DO NOTHING RETURNING ${columns}`,
          [
            input.id,
            turn.sessionId,
            turnId,
            n,
            input.tool,
            input.callHash,
            input.summary,
            input.reason,
            input.expiresInMs,
            input.input === undefined ? null : JSON.stringify(input.input),
            input.grants === undefined || input.grants.length === 0 ? null : JSON.stringify(input.grants),
            input.authorization === undefined ? null : JSON.stringify(input.authorization),
          ],
        );
        const approval = rows[0];
        if (approval === undefined) throw new WireError("CONFLICT", `the approval id ${input.id} is taken`);
        const log = new SessionLog(client, turn.sessionId, turnId);
        const seq = await log.event("approval.requested", {
          ...(await aboutCall(client, approval)),
          summary: approval.summary,
          reason: approval.reason,
          expiresAt: approval.expiresAt,
          mayAlways: approval.mayAlways,
          ...(input.input === undefined ? {} : { input: input.input }),
        });
        for (const outgoing of input.outgoing) await enqueueText(client, turnId, outgoing);
        if (input.toOwner !== undefined && owner !== null) {
          await enqueueText(client, turnId, { ...input.toOwner, address: owner });
          notified.push(owner);
        }
        return { result: { approval, seq }, memo: { id: approval.id, seq } };
      },
      async replay(client, memo) {
        const { id, seq } = memo as { id: string; seq: number };
        return { approval: singleRow([await find(client, "id = $1", [id])].flatMap((row) => row ?? [])), seq };
      },
    });
    announceOutgoing(bus, notified);
    return output;
  },

  async approvalDecide({ database, bus }, input) {
    const { output, event, sessionId } = await runChange(database, "approval_decide", input.opId, async (client) => {
      // Lock order: the question, then the turn, as when a turn is parked.
      const { rows } = await client.query<Approval>(
        `SELECT ${columns} FROM parley.approvals WHERE id = $1 FOR UPDATE`,
        [input.id.toUpperCase()],
      );
      const [row] = rows;
      if (row === undefined) return { output: { outcome: "not_found" as const, approval: null } };
      if (row.state !== "pending") {
        return {
          output: { outcome: row.state === "expired" ? ("expired" as const) : ("already" as const), approval: row },
        };
      }
      const state = input.allow ? "allowed" : "denied";
      const always = input.allow && input.always && row.mayAlways === true;
      await client.query(
        `UPDATE parley.approvals SET state = $2, always = $3, decided_by = $4, decided_at = now(),
           updated_input = $5, message = $6, interrupt = $7 WHERE id = $1`,
        [row.id, state, always, input.by, ...additionsTo(input)],
      );
      const log = new SessionLog(client, row.sessionId, row.turnId);
      const about = await aboutCall(client, row);
      const decided = { ...about, allowed: input.allow, by: input.by, ...omitUndefined({ message: input.message }) };
      const seq = await log.event("approval.decided", decided);
      // Lock order: after the session, as when a due turn is claimed.
      await unpark(client, row.turnId);
      const event: DurableEvent = { type: "approval.decided", seq, turnId: row.turnId, ...decided };
      const approval: Approval = { ...row, state, always, decidedBy: input.by };
      return { output: { outcome: "decided" as const, approval }, event, sessionId: row.sessionId };
    });
    if (event !== undefined) {
      bus.publish(sessionEvent, event, { session: sessionId });
      publishReady(bus, [{ sessionId, priority: priorityOf.user }]);
    }
    return output;
  },

  async approvalGet({ database }, { id }) {
    const { rows } = await database.query<Approval & { input: string | null }>(
      `SELECT ${columns}, input FROM parley.approvals WHERE id = $1`,
      [id.toUpperCase()],
    );
    const [row] = rows;
    if (row === undefined) return { approval: null, input: null };
    const { input, ...approval } = row;
    return { approval, input: input === null ? null : (JSON.parse(input) as string) };
  },

  async approvalList({ database }, input) {
    const { rows } = await database.query<ListedApproval>(
      `SELECT ${columns}, (SELECT title FROM parley.sessions WHERE sessions.id = session_id) AS "sessionTitle"
       FROM parley.approvals
       WHERE ($1::uuid IS NULL OR session_id = $1) AND (NOT $2 OR (state = 'pending' AND ${isOpen}))
         AND ($4::text IS NULL OR EXISTS (
           SELECT FROM parley.outbox o WHERE o.turn_id = approvals.turn_id AND o.channel = $4 AND o.account = $5
             AND o.conversation = $6 AND o.actions LIKE '%/approve ' || approvals.id || '"%'))
       ORDER BY requested_at DESC LIMIT $3`,
      [
        input.sessionId ?? null,
        input.pending,
        input.limit,
        input.askedIn?.channel ?? null,
        input.askedIn?.account ?? null,
        input.askedIn?.conversation ?? null,
      ],
    );
    return { approvals: rows.map(cutEnd) };
  },
} satisfies Partial<Handlers>;

/** Column values of a decision: updated arguments, reason and interrupt. Throws INVALID_INPUT for invalid combinations. */
function additionsTo(input: InputOf<typeof store.approvalDecide>): [string | null, string | null, boolean] {
  const { allow, always, updatedInput, message, interrupt = false } = input;
  if (updatedInput !== undefined && (!allow || always)) {
    throw new WireError("INVALID_INPUT", "updatedInput: only an approval of this one call can change its arguments");
  }
  if (allow && (message !== undefined || interrupt)) {
    throw new WireError("INVALID_INPUT", "message, interrupt: only a denial can have them");
  }
  return [updatedInput ?? null, message ?? null, interrupt];
}

/** Truncates a summary, because a page of questions must fit in one bus message; `store.approval.get` returns the full text. */
function cutEnd<A extends Approval>(approval: A): A {
  const { summary } = approval;
  const hiddenCharacters = summary.length - store.listedSummaryCharacters;
  if (hiddenCharacters <= 0) return approval;
  return { ...approval, summary: summary.slice(0, store.listedSummaryCharacters).toWellFormed(), hiddenCharacters };
}

/** The permission rules that approvals given in this turn grant until its end. */
export async function grantedIn(client: PoolClient, turnId: string): Promise<string[]> {
  const { rows } = await client.query<{ grants: string }>(
    "SELECT grants FROM parley.approvals WHERE turn_id = $1 AND state = 'allowed' AND grants IS NOT NULL",
    [turnId],
  );
  return [...new Set(rows.flatMap(({ grants }) => JSON.parse(grants) as string[]))];
}

async function find(client: PoolClient, condition: string, values: unknown[]): Promise<Approval | undefined> {
  const { rows } = await client.query<Approval>(`SELECT ${columns} FROM parley.approvals WHERE ${condition}`, values);
  return rows[0];
}

async function aboutCall(client: PoolClient, approval: Approval) {
  const { rows } = await client.query<{ call_id: string }>(
    "SELECT call_id FROM parley.steps WHERE turn_id = $1 AND n = $2",
    [approval.turnId, approval.n],
  );
  return { approvalId: approval.id, callId: singleRow(rows).call_id, tool: approval.tool };
}
