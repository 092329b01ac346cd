// The address of the owner for messages that the agent sends on its own.
import type { ReplyAddress } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import { addressOf } from "../../db/mappers.ts";

/**
 * The most recent address from which an owner sent a message and can be reached; null when there is none. `except`: an account that is not
 * used; then those that are known not to work are not used either.
 */
export async function ownerAddress(
  client: PoolClient,
  except?: { channel: string; account: string },
): Promise<ReplyAddress | null> {
  const { rows } = await client.query<{ reply_to: string }>(
    `SELECT reply_to FROM parley.inbox i WHERE trust = 'owner' AND reply_to IS NOT NULL
       AND ($1::text IS NULL OR ((channel, account) <> ($1, $2)
         AND NOT EXISTS (SELECT FROM parley.account_outages o WHERE o.channel = i.channel AND o.account = i.account)))
     ORDER BY received_at DESC LIMIT 1`,
    [except?.channel ?? null, except?.account ?? null],
  );
  return addressOf(rows[0]?.reply_to ?? null);
}
