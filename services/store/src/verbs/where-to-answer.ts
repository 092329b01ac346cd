// Where what comes of a command in the background is answered.
import type { PoolClient } from "../database.ts";
import { senderOf } from "../rows.ts";
import type { TurnHeard } from "./listener.ts";

/** Of what came into a session lately, looked through for where it can be answered. */
const recentRows = 20;

/**
 * Where whoever's word began the turn has spoken last in its session. What was begun in a group is answered where it was begun, and
 * what was begun elsewhere is not answered in a group.
 */
export async function whereToAnswer(
  client: PoolClient,
  { sessionId, trust, replyTo, sender }: TurnHeard,
): Promise<string | null> {
  if (senderOf(sender).direct === false) return replyTo;
  const { rows } = await client.query<{ reply_to: string; sender: string }>(
    `SELECT reply_to, sender FROM parley.inbox
     WHERE session_id = $1 AND trust = $2 AND reply_to IS NOT NULL ORDER BY seq DESC LIMIT ${recentRows}`,
    [sessionId, trust],
  );
  return rows.find((row) => senderOf(row.sender).direct !== false)?.reply_to ?? replyTo;
}
