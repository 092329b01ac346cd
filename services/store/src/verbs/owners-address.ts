// Where an owner can be reached who has not asked: what the agent says of itself goes there.
import type { ReplyAddress } from "@parley/contracts";
import type { PoolClient } from "../database.ts";
import { addressOf } from "../rows.ts";

/** Where an owner has last spoken and can be answered; null where none ever has. */
export async function ownersAddress(client: PoolClient): Promise<ReplyAddress | null> {
  const { rows } = await client.query<{ reply_to: string }>(
    "SELECT reply_to FROM parley.inbox WHERE trust = 'owner' AND reply_to IS NOT NULL ORDER BY received_at DESC LIMIT 1",
  );
  return addressOf(rows[0]?.reply_to ?? null);
}
