// The outbox: `pending → sending → sent | unknown | dropped`. A row is claimed before it is sent, one per conversation at a time, which
// preserves the order and detects possible duplicates.
import { faultPoint } from "@parley/chassis";
import { type store, WireError, type OutboxRow, type OutputOf } from "@parley/contracts";
import { withClient, type PoolClient } from "../../db/database.ts";
import { singleRow, runOperation } from "../../db/operation.ts";
import { announceOutgoing, enqueueStandalone } from "./enqueue.ts";
import type { Handlers } from "../handler.ts";

interface Row {
  id: number;
  turn_id: string | null;
  op_id: string | null;
  ordinal: number;
  channel: string;
  account: string;
  conversation: string;
  reply_to_id: string | null;
  body: string;
  attachment: string | null;
  attempts: number;
  expires_at: string;
  trace: string | null;
}

function outboxRowOf(row: Row): OutboxRow {
  return {
    outboxId: String(row.id),
    turnId: row.turn_id,
    ordinal: row.ordinal,
    address: {
      channel: row.channel,
      account: row.account,
      conversation: row.conversation,
      ...(row.reply_to_id === null ? {} : { replyToId: row.reply_to_id }),
    },
    text: JSON.parse(row.body) as string,
    attachment: row.attachment === null ? null : (JSON.parse(row.attachment) as OutboxRow["attachment"]),
    idempotencyKey: `${row.turn_id ?? row.op_id ?? ""}-${row.ordinal}`,
    attempts: row.attempts - 1,
    expiresAt: row.expires_at,
    trace: row.trace,
  };
}

// A sender counts as dead when its claim has expired, when its replica has a new incarnation, or when another process owns the account's
// connection.
const leftBehind = `
  state = 'sending' AND channel = $1 AND account = $2
  AND (claim_until < now() OR (claim_replica = $3 AND claim_incarnation <> $4) OR ($5 AND claim_incarnation <> $4))`;

const claimRows = {
  name: "outbox-claim",
  text: `
    UPDATE parley.outbox SET
      state = 'sending', attempts = attempts + 1, claim_replica = $3, claim_incarnation = $4,
      claim_until = now() + $5 * interval '1 millisecond', error = NULL
    WHERE state = 'pending' AND id IN (
      SELECT id FROM (
        SELECT DISTINCT ON (conversation) id, state, not_before FROM parley.outbox
        WHERE channel = $1 AND account = $2 AND state IN ('pending', 'sending') ORDER BY conversation, id
      ) AS first
      WHERE state = 'pending' AND not_before <= now() ORDER BY id LIMIT $6
    )
    RETURNING id, turn_id, op_id, ordinal, channel, account, conversation, reply_to_id, body, attachment, attempts, expires_at, trace`,
};

async function checkLease(client: PoolClient, lease: { name: string; fence: number }): Promise<void> {
  const { rowCount } = await client.query("SELECT FROM parley.leases WHERE name = $1 AND fence = $2 FOR SHARE", [
    lease.name,
    lease.fence,
  ]);
  if (rowCount !== 1) throw new WireError("FENCED", `lease ${lease.name}: fence ${lease.fence} is over`);
}

const settleRow = {
  name: "outbox-settle",
  text: `
    UPDATE parley.outbox SET
      state = CASE WHEN $3 = 'retry' THEN 'pending' ELSE $3 END,
      provider_message_id = coalesce($4, provider_message_id),
      error = $5,
      not_before = now() + $6 * interval '1 millisecond',
      settled_at = CASE WHEN $3 = 'retry' THEN NULL ELSE now() END
    WHERE id = $1 AND state = 'sending' AND claim_incarnation = $2`,
};

export const outboxHandlers = {
  async outboxPut({ database, bus }, input) {
    const { address } = input.outgoing;
    faultPoint("store.before_outbox_put");
    const id = await withClient(database, async (client) => {
      const known =
        (await enqueueStandalone(client, input.opId, input.outgoing)) ??
        singleRow(
          (await client.query<{ id: number }>("SELECT id FROM parley.outbox WHERE op_id = $1", [input.opId])).rows,
        );
      return known.id;
    });
    announceOutgoing(bus, [address]);
    return { outboxId: String(id) };
  },

  async outboxGet({ database }, { outboxId }) {
    const { rows } = await database.query<OutputOf<typeof store.outboxGet>>(
      `SELECT state, attempts, provider_message_id AS "providerMessageId", error FROM parley.outbox WHERE id = $1`,
      [outboxId],
    );
    if (rows[0] === undefined) throw new WireError("NOT_FOUND", `no outbox row ${outboxId}`);
    return rows[0];
  },

  outboxClaim({ database }, input) {
    const { owner, channel, account, lease } = input;
    return runOperation(
      database,
      { opId: input.opId, epoch: null },
      {
        name: "outbox_claim",
        async run(client) {
          if (lease !== undefined) await checkLease(client, lease);
          await client.query(
            `UPDATE parley.outbox SET state = 'dropped', settled_at = now(), error = 'expired before it could be sent'
           WHERE state = 'pending' AND channel = $1 AND account = $2 AND expires_at < now()`,
            [channel, account],
          );
          await client.query(
            input.deduplicates
              ? `UPDATE parley.outbox SET state = 'pending', error = 'the sender crashed' WHERE ${leftBehind}`
              : `UPDATE parley.outbox SET state = 'unknown', settled_at = now(), error = 'the sender crashed while sending' WHERE ${leftBehind}`,
            [channel, account, owner.replica, owner.incarnation, lease !== undefined],
          );
          const { rows } = await client.query<Row>({
            ...claimRows,
            values: [channel, account, owner.replica, owner.incarnation, input.claimMs, input.limit],
          });
          const claimed = rows.sort((a, b) => a.id - b.id).map(outboxRowOf);
          // An empty claim changes nothing, so it needs no memo.
          return {
            result: { rows: claimed },
            ...(rows.length === 0 ? {} : { memo: { ids: rows.map((row) => row.id) } }),
          };
        },
        async replay(client, memo) {
          const { rows } = await client.query<Row>(
            `SELECT id, turn_id, op_id, ordinal, channel, account, conversation, reply_to_id, body, attachment, attempts, expires_at, trace
           FROM parley.outbox WHERE id = ANY($1::bigint[]) AND state = 'sending' AND claim_incarnation = $2 ORDER BY id`,
            [(memo as { ids: number[] }).ids, owner.incarnation],
          );
          return { rows: rows.map(outboxRowOf) };
        },
      },
    );
  },

  outboxSettle({ database }, input) {
    const { outcome } = input;
    return runOperation(
      database,
      { opId: input.opId, epoch: null },
      {
        name: "outbox_settle",
        async run(client) {
          const { rowCount } = await client.query({
            ...settleRow,
            values: [
              input.outboxId,
              input.owner.incarnation,
              outcome.state,
              outcome.state === "sent" ? outcome.providerMessageId : null,
              outcome.state === "sent" ? null : outcome.reason,
              outcome.state === "retry" ? outcome.afterMs : 0,
            ],
          });
          const result = { settled: rowCount === 1 };
          return { result, memo: result };
        },
      },
    );
  },
} satisfies Partial<Handlers>;
