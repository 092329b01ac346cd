// Putting a turn's text into the outbox, in the transaction of the step that says it.
import type { Outgoing } from "@parley/contracts";
import type { PoolClient } from "../database.ts";

const insert = {
  name: "outbox-queue",
  text: `
    INSERT INTO parley.outbox (turn_id, ordinal, channel, account, conversation, reply_to_id, body, expires_at)
    SELECT $1, (SELECT count(*) FROM parley.outbox WHERE turn_id = $1), $2, $3, $4, $5, $6, now() + $7 * interval '1 millisecond'`,
};

export async function queueText(
  client: PoolClient,
  turnId: string,
  { address, text, expiresInMs }: Outgoing,
): Promise<void> {
  await client.query({
    ...insert,
    values: [
      turnId,
      address.channel,
      address.account,
      address.conversation,
      address.replyToId ?? null,
      JSON.stringify(text),
      expiresInMs,
    ],
  });
}
