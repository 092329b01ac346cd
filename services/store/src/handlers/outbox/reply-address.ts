// The reply address for results of background processes.
import type { PoolClient } from "../../db/database.ts";
import { senderOf } from "../../db/mappers.ts";
import type { TurnAudience } from "../turns/notice-target.ts";

/** Number of recent inbox rows to search for a reply address. */
const recentRows = 20;

/**
 * The latest address in the session of a sender with the turn's trust. A turn that began in a group is answered there, and a turn that began
 * elsewhere is never answered in a group.
 */
export async function replyAddressOf(
  client: PoolClient,
  { sessionId, trust, replyTo, sender }: TurnAudience,
): Promise<string | null> {
  if (senderOf(sender).direct === false) return replyTo;
  const { rows } = await client.query<{ reply_to: string; sender: string }>(
    `SELECT reply_to, sender FROM parley.inbox
     WHERE session_id = $1 AND trust = $2 AND reply_to IS NOT NULL ORDER BY seq DESC LIMIT ${recentRows}`,
    [sessionId, trust],
  );
  return rows.find((row) => senderOf(row.sender).direct !== false)?.reply_to ?? replyTo;
}
