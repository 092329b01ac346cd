// Enqueues a text and its attachments in the outbox, in the transaction of a turn's step or of a separate operation.
import { activeTrace } from "@parley/chassis";
import type { Bus } from "@parley/bus";
import { outboxReady, type Outgoing, type ReplyAddress } from "@parley/contracts";
import { addTurnReferences } from "../../blobs/references.ts";
import type { PoolClient } from "../../db/database.ts";

const insert = {
  name: "outbox-queue",
  text: `
    INSERT INTO parley.outbox (turn_id, ordinal, channel, account, conversation, reply_to_id, body, expires_at, trace, actions, reply_context, attachment)
    SELECT $1, (SELECT coalesce(max(ordinal) + 1, 0) FROM parley.outbox WHERE turn_id = $1), $2, $3, $4, $5, $6, now() + $7 * interval '1 millisecond', $8, $9, $10, $11
    ON CONFLICT (turn_id, ordinal) DO NOTHING`,
};

const insertLoose = {
  name: "outbox-queue-loose",
  text: `
    INSERT INTO parley.outbox (op_id, ordinal, channel, account, conversation, reply_to_id, body, expires_at, trace, actions, reply_context)
    VALUES ($1, 0, $2, $3, $4, $5, $6, now() + $7 * interval '1 millisecond', $8, $9, $10) ON CONFLICT (op_id) DO NOTHING RETURNING id`,
};

/** Notifies the gateways of these addresses; call after the commit. */
export function announceOutgoing(bus: Bus, addresses: readonly Pick<ReplyAddress, "channel" | "account">[]): void {
  for (const { channel, account } of addresses) bus.publish(outboxReady, { account }, { channel });
}

/** Notifies the gateways of these texts; call after the commit. */
export function announceTexts(bus: Bus, outgoing: readonly Outgoing[] = []): void {
  announceOutgoing(
    bus,
    outgoing.map(({ address }) => address),
  );
}

/** The text first, then each attachment as its own row: each row is claimed, sent and settled separately. */
export async function enqueueText(client: PoolClient, turnId: string, outgoing: Outgoing): Promise<void> {
  const { attachments = [] } = outgoing;
  if (outgoing.text !== "" || attachments.length === 0) {
    await queueRow(client, [turnId, ...valuesOf(outgoing), null]);
  }
  const { actions: _, ...withoutActions } = outgoing;
  for (const attachment of attachments) {
    await queueRow(client, [turnId, ...valuesOf({ ...withoutActions, text: "" }), JSON.stringify(attachment)]);
  }
  await addTurnReferences(
    client,
    turnId,
    attachments.map(({ sha256 }) => sha256),
  );
}

/**
 * Two concurrent transactions of the same turn can compute the same ordinal. The second one waits for the first to commit and then
 * retries with the next ordinal.
 */
async function queueRow(client: PoolClient, values: unknown[]): Promise<void> {
  for (;;) {
    const { rowCount } = await client.query({ ...insert, values });
    if (rowCount === 1) return;
  }
}

/** Enqueues a text without a turn, unique by its operation; undefined when it already exists. */
export async function enqueueStandalone(
  client: PoolClient,
  opId: string,
  outgoing: Outgoing,
): Promise<{ id: number } | undefined> {
  const { rows } = await client.query<{ id: number }>({ ...insertLoose, values: [opId, ...valuesOf(outgoing)] });
  return rows[0];
}

function valuesOf({ address, text, expiresInMs, actions = [] }: Outgoing): unknown[] {
  return [
    address.channel,
    address.account,
    address.conversation,
    address.replyToId ?? null,
    JSON.stringify(text),
    expiresInMs,
    activeTrace(),
    actions.length === 0 ? null : JSON.stringify(actions),
    address.context ?? null,
  ];
}
