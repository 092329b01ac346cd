// Finds a message of an account by its content, for senders that do not sign the external id of a message.
import type { InboundMessage, InputOf, store } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";

type Content = NonNullable<InputOf<typeof store.inboxPut>["content"]>;

interface Repeated {
  id: string;
  session_id: string;
  asked: boolean;
  held_up_by: null;
}

/**
 * Returns the newest message of the account with this content that was stored within `sameWithinMs`. Equal contents wait for each other
 * until the end of the transaction, so that only the first is stored.
 */
export async function findRepeatedContent(
  client: PoolClient,
  { channel, account }: InboundMessage,
  { id, sameWithinMs }: Content,
): Promise<Repeated | undefined> {
  const place = [channel, account, JSON.stringify(id)];
  await client.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [`content ${place.join(" ")}`]);
  const { rows } = await client.query<Repeated>({
    name: "inbox-repeated-content",
    text: `SELECT id, session_id, false AS asked, NULL AS held_up_by FROM parley.inbox
           WHERE channel = $1 AND account = $2 AND message_id = $3 AND received_at > now() - $4 * interval '1 millisecond'
           ORDER BY received_at DESC LIMIT 1`,
    values: [...place, sameWithinMs],
  });
  return rows[0];
}
