// Previews: the message that shows an answer while its turn runs. The process that follows the turn sends and edits it; when the turn has
// ended, the answer replaces it on any replica that claims the answer.
//
//   sending ─→ shown ─→ replaced by the answer, or deleted where no text replaces it
//           └→ unknown  it may have arrived, but nobody knows its id: the answer is a message of its own
import type { InputOf, store } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import { runOperation, runTransaction } from "../../db/operation.ts";
import { isPaused } from "../accounts/accounts.ts";
import type { Handlers } from "../handler.ts";
import { block, debit, hasRoomForPreview, lockLimits } from "./limits.ts";
import { checkLease } from "./lease-check.ts";

type ClaimInput = InputOf<typeof store.outboxClaim>;
type Preview = Pick<InputOf<typeof store.previewEdit>, "turnId" | "channel" | "account" | "conversation" | "owner">;

/** A condition on the open row `first` of a conversation: no preview is in flight there, and none of an ended turn awaits its replacement. */
export const noPreviewAhead = `NOT EXISTS (
  SELECT FROM parley.previews p JOIN parley.turns t ON t.id = p.turn_id
  WHERE p.channel = $1 AND p.account = $2 AND p.conversation = first.conversation AND (p.state = 'sending' OR t.state <> 'running'))`;

// The process that may edit a preview counts as dead like the sender of a text.
const isAbandoned = `(p.claim_until < now() OR (p.claim_replica = $3 AND p.claim_incarnation <> $4) OR ($5 AND p.claim_incarnation <> $4))`;

/** Sends of a crashed process: nobody knows the id of the message. */
const abandonSends = {
  name: "previews-abandon",
  text: `UPDATE parley.previews p SET state = 'unknown'
         WHERE p.channel = $1 AND p.account = $2 AND p.state = 'sending' AND ${isAbandoned}`,
};

/** Previews of ended turns: the first text of the turn replaces the message; otherwise a row without text deletes it. */
const replaceEnded = {
  name: "previews-replace",
  text: `
    WITH ended AS (
      DELETE FROM parley.previews p USING parley.turns t
      WHERE p.channel = $1 AND p.account = $2 AND t.id = p.turn_id AND t.state <> 'running' AND p.state <> 'sending'
        AND (p.claim_incarnation = $4 OR ${isAbandoned})
      RETURNING p.*
    ), replaced AS (
      UPDATE parley.outbox o SET replaces = e.message_id
      FROM ended e
      WHERE e.message_id IS NOT NULL AND NOT e.superseded AND o.id = (
        SELECT min(id) FROM parley.outbox
        WHERE turn_id = e.turn_id AND channel = e.channel AND account = e.account AND conversation = e.conversation
          AND state = 'pending' AND position = 0 AND NOT interrupted AND attachment IS NULL AND actions IS NULL)
      RETURNING e.turn_id, e.conversation
    )
    INSERT INTO parley.outbox (op_id, ordinal, channel, account, conversation, body, expires_at, reply_context, replaces)
    SELECT gen_random_uuid(), 0, channel, account, conversation, '""', now() + interval '1 day', reply_context, message_id
    FROM ended e
    WHERE message_id IS NOT NULL
      AND NOT EXISTS (SELECT FROM replaced r WHERE r.turn_id = e.turn_id AND r.conversation = e.conversation)`,
};

/** Before a claim: settles previews that crashed processes left behind, and gives those of ended turns to their texts. */
export async function resolvePreviews(
  client: PoolClient,
  { channel, account, owner, lease }: ClaimInput,
): Promise<void> {
  const { rowCount } = await client.query({
    name: "previews-any",
    text: "SELECT FROM parley.previews WHERE channel = $1 AND account = $2 LIMIT 1",
    values: [channel, account],
  });
  if (rowCount === 0) return;
  const values = [channel, account, owner.replica, owner.incarnation, lease !== undefined];
  await client.query({ ...abandonSends, values });
  await client.query({ ...replaceEnded, values });
}

/** After a claim: a text that is sent while a turn runs follows the turn's preview, so the answer is a message of its own. */
export async function supersedePreviews(
  client: PoolClient,
  { channel, account }: ClaimInput,
  conversations: readonly string[],
): Promise<void> {
  if (conversations.length === 0) return;
  await client.query({
    name: "previews-supersede",
    text: `UPDATE parley.previews SET superseded = true
           WHERE channel = $1 AND account = $2 AND conversation = ANY($3::text[]) AND NOT superseded`,
    values: [channel, account, conversations],
  });
}

/** The columns of one preview's key, as parameters $1 to $4. */
const isPreview = "channel = $1 AND account = $2 AND conversation = $3 AND turn_id = $4";
const keyOf = ({ channel, account, conversation, turnId }: Preview) => [channel, account, conversation, turnId];

export const previewHandlers = {
  previewOpen({ database }, input) {
    const { opId, turnId, channel, account, conversation, owner, lease, address, claimMs } = input;
    return runOperation<{ verdict: "open" | "later" | "never" }>(
      database,
      { opId, epoch: null },
      {
        name: "preview_open",
        async run(client) {
          // The lock orders this after or before the end of the turn: a claim of its answer sees the preview.
          const { rows } = await client.query<{ state: string }>(
            "SELECT state FROM parley.turns WHERE id = $1 FOR SHARE",
            [turnId],
          );
          if (rows[0]?.state !== "running" || (await isPaused(client, channel, account))) {
            return { result: { verdict: "never" } };
          }
          // After the wait for the turn: a locked lease cannot be renewed.
          if (lease !== undefined) await checkLease(client, lease);
          await lockLimits(client, input);
          const waiting = await client.query(
            `SELECT FROM parley.outbox
             WHERE channel = $1 AND account = $2 AND conversation = $3 AND state IN ('pending', 'sending') LIMIT 1`,
            [channel, account, conversation],
          );
          if (waiting.rowCount !== 0 || !(await hasRoomForPreview(client, input))) {
            return { result: { verdict: "later" } };
          }
          const { rowCount } = await client.query(
            `INSERT INTO parley.previews (channel, account, conversation, turn_id, reply_context, claim_replica, claim_incarnation, claim_until)
             VALUES ($1, $2, $3, $4, $5, $6, $7, now() + $8 * interval '1 millisecond') ON CONFLICT DO NOTHING`,
            [...keyOf(input), address.context ?? null, owner.replica, owner.incarnation, claimMs],
          );
          // With a memo, the operation ends as its concurrent repetition, which has opened the preview.
          if (rowCount === 0) return { result: { verdict: "never" }, memo: { verdict: "never" } };
          await debit(client, input, [conversation]);
          return { result: { verdict: "open" }, memo: { verdict: "open" } };
        },
      },
    );
  },

  previewEdit({ database }, input) {
    return runTransaction(database, async (client) => {
      await lockLimits(client, input);
      const { rowCount } = await client.query(
        `UPDATE parley.previews SET claim_until = now() + $6 * interval '1 millisecond'
         WHERE ${isPreview} AND state = 'shown' AND NOT superseded AND claim_incarnation = $5`,
        [...keyOf(input), input.owner.incarnation, input.claimMs],
      );
      if (rowCount === 0) return { verdict: "never" };
      if (!(await hasRoomForPreview(client, input))) return { verdict: "later" };
      await debit(client, input, [input.conversation]);
      return { verdict: "edit" };
    });
  },

  previewSettle({ database }, input) {
    return runOperation(
      database,
      { opId: input.opId, epoch: null },
      {
        name: "preview_settle",
        async run(client) {
          await lockLimits(client, input);
          await settle(client, input);
          return { result: {}, memo: {} };
        },
      },
    );
  },
} satisfies Partial<Handlers>;

async function settle(client: PoolClient, input: InputOf<typeof store.previewSettle>): Promise<void> {
  const { outcome, owner, address } = input;
  const mine = `${isPreview} AND claim_incarnation = $5`;
  const values = [...keyOf(input), owner.incarnation];
  switch (outcome.state) {
    case "failed":
      await client.query(`DELETE FROM parley.previews WHERE ${mine} AND state = 'sending'`, values);
      if (outcome.pause !== undefined) await block(client, input, outcome.pause.afterMs, outcome.pause.scope);
      return;
    case "released":
      await client.query(`UPDATE parley.previews SET claim_until = now() WHERE ${mine}`, values);
      return;
    case "unknown":
      await client.query(`UPDATE parley.previews SET state = 'unknown' WHERE ${mine} AND state = 'sending'`, values);
      return;
    case "sent": {
      const { rowCount } = await client.query(
        `UPDATE parley.previews SET state = 'shown', message_id = $6 WHERE ${mine}`,
        [...values, outcome.messageId],
      );
      // The sender stalled for longer than its claim, and the answer was sent as a message of its own.
      if (rowCount === 0) await enqueueRemoval(client, input, address.context, outcome.messageId);
      return;
    }
    default:
      outcome satisfies never;
  }
}

async function enqueueRemoval(
  client: PoolClient,
  { channel, account, conversation, opId }: InputOf<typeof store.previewSettle>,
  context: string | undefined,
  messageId: string,
): Promise<void> {
  await client.query(
    `INSERT INTO parley.outbox (op_id, ordinal, channel, account, conversation, body, expires_at, reply_context, replaces)
     VALUES ($1, 0, $2, $3, $4, '""', now() + interval '1 day', $5, $6)`,
    [opId, channel, account, conversation, context ?? null, messageId],
  );
}
