// The address of the owner for messages that the agent sends on its own.
import type { ReplyAddress } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import { addressOf } from "../../db/mappers.ts";

/** The most recent address from which an owner sent a message and can be reached; null when there is none. */
export async function ownerAddress(client: PoolClient): Promise<ReplyAddress | null> {
  const { rows } = await client.query<{ reply_to: string }>(
    "SELECT reply_to FROM parley.inbox WHERE trust = 'owner' AND reply_to IS NOT NULL ORDER BY received_at DESC LIMIT 1",
  );
  return addressOf(rows[0]?.reply_to ?? null);
}
