// Ends a turn without a further model call: cancelled, limited, failed or dead.
import {
  WireError,
  type DurableEvent,
  type Finish,
  type InputOf,
  type Outgoing,
  type Part,
  type store,
  type TrustLevel,
} from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import { runOperation } from "../../db/operation.ts";
import {
  deliverResults,
  lockOpenCalls,
  rewriteResults,
  settleOpenCalls,
  redactResults,
  type Redaction,
} from "../steps/open-calls.ts";
import { notifyParent, publishReady, type ReadyHint } from "./notify.ts";
import { announceTexts } from "../outbox/enqueue.ts";
import { SessionLog } from "../sessions/log.ts";
import { requeueUndelivered } from "../questions/requeue.ts";
import { stopOrphans } from "./turns.ts";
import type { Handlers } from "../handler.ts";

interface Ending {
  turnId: string;
  /** Null if the caller has already verified that it may end the turn. */
  epoch: number | null;
  parts: Part[];
  model: string | null;
  /** The session's new prefix; undefined: unchanged. */
  prefixHash?: string | undefined;
  rewritten?: InputOf<typeof store.turnFinish>["rewritten"];
  withhold?: Redaction | undefined;
  unsettled: string;
  outgoing: Outgoing[];
  finish: Finish;
  /** The turn is tainted, or it is not known whether its open calls read untrusted content. */
  tainted?: boolean | undefined;
  /** Sessions to wake after the commit. */
  wakes: ReadyHint[];
}

export const endHandlers = {
  async turnFinish({ database, bus }, input) {
    const wakes: ReadyHint[] = [];
    const output = await runOperation(database, input, {
      name: "finish",
      async run(client) {
        const events = await endTurn(client, { ...input, wakes });
        const waiting = await client.query(
          `SELECT FROM parley.inbox i JOIN parley.turns t ON t.session_id = i.session_id
           WHERE t.id = $1 AND i.state = 'queued' AND i.ready_at <= now() LIMIT 1`,
          [input.turnId],
        );
        const result = { events, queued: waiting.rowCount === 1 };
        return { result, memo: result };
      },
    });
    publishReady(bus, wakes);
    announceTexts(bus, input.outgoing);
    await stopOrphans(database, bus, [input.turnId]);
    return output;
  },
} satisfies Partial<Handlers>;

/** Settles open calls, stores the streamed part of an aborted answer, ends the turn and enqueues its messages. */
export async function endTurn(client: PoolClient, ending: Ending): Promise<DurableEvent[]> {
  const { turnId } = ending;
  const turn = await lockTurn(client, turnId, ending.epoch);
  const log = new SessionLog(client, turn.sessionId, turnId);
  await rewriteResults(client, turnId, ending.rewritten);
  const open = await redactResults(client, await lockOpenCalls(client, turnId), ending.withhold);
  await deliverResults(client, log, turnId, await settleOpenCalls(client, open, ending.unsettled), ending.tainted);
  if (open.length > 0) await requeueUndelivered(client, turnId, null, ending.wakes);
  await log.appendShown(ending.parts, ending.model, ending.tainted);
  if (ending.prefixHash !== undefined) {
    await client.query("UPDATE parley.sessions SET prefix_hash = $2 WHERE id = $1", [
      turn.sessionId,
      ending.prefixHash,
    ]);
  }
  const finished = await log.finish(ending.finish, ending.outgoing);
  await notifyParent(client, turnId, ending.finish, ending.wakes);
  return [...log.events, finished];
}

interface LockedTurn {
  sessionId: string;
  trust: TrustLevel;
  exclusive: boolean;
  /** A person stopped it. */
  cancelRequested: boolean;
  replyTo: string | null;
}

/** Locks a running turn. The session is locked later, with the first sequence number, in the same order as a commit. Throws NOT_FOUND, CONFLICT. */
export async function lockTurn(client: PoolClient, turnId: string, epoch: number | null): Promise<LockedTurn> {
  const found = await client.query<{
    session_id: string;
    state: string;
    epoch: number;
    trust: TrustLevel;
    exclusive: boolean;
    cancel_requested: boolean;
    reply_to: string | null;
  }>(
    "SELECT session_id, state, epoch, trust, exclusive, cancel_requested, reply_to FROM parley.turns WHERE id = $1 FOR UPDATE",
    [turnId],
  );
  const turn = found.rows[0];
  if (turn === undefined) throw new WireError("NOT_FOUND", `no turn ${turnId}`);
  if (turn.state !== "running") throw new WireError("CONFLICT", `turn ${turnId} is ${turn.state}`);
  if (epoch !== null && turn.epoch !== epoch) {
    throw new WireError("CONFLICT", `turn ${turnId} was claimed by epoch ${turn.epoch}`);
  }
  return {
    sessionId: turn.session_id,
    trust: turn.trust,
    exclusive: turn.exclusive,
    cancelRequested: turn.cancel_requested,
    replyTo: turn.reply_to,
  };
}
