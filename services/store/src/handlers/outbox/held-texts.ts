// Texts of which only a page was sent: the rest waits until a person asks for it, the session gets a successor, or the time is up.
import type { PoolClient } from "../../db/database.ts";
import { runOperation } from "../../db/operation.ts";
import type { Handlers } from "../handler.ts";
import { announceOutgoing } from "./enqueue.ts";

/** How long the rest of a text can be asked for. */
const heldDays = 30;

/** Ends the texts of a session whose rest waits; it cannot be asked for any more. */
export async function dropHeldTexts(client: PoolClient, sessionId: string): Promise<void> {
  await client.query(
    `UPDATE parley.outbox SET held_at = NULL
     WHERE held_at IS NOT NULL AND turn_id IN (SELECT id FROM parley.turns WHERE session_id = $1)`,
    [sessionId],
  );
}

export const heldTextHandlers = {
  outboxMore({ database, bus }, { opId, channel, account, conversation, expiresInMs }) {
    return runOperation(
      database,
      { opId, epoch: null },
      {
        name: "outbox_more",
        async run(client) {
          const { rowCount } = await client.query(
            `UPDATE parley.outbox SET state = 'pending', position = held_at, held_at = NULL, settled_at = NULL, attempts = 0,
               not_before = now(), expires_at = now() + $4 * interval '1 millisecond'
             WHERE id = (SELECT max(id) FROM parley.outbox
                         WHERE channel = $1 AND account = $2 AND conversation = $3 AND held_at IS NOT NULL
                           AND settled_at > now() - interval '${heldDays} days')`,
            [channel, account, conversation, expiresInMs],
          );
          const result = { found: rowCount === 1 };
          return { result, memo: result };
        },
      },
    ).finally(() => announceOutgoing(bus, [{ channel, account }]));
  },
} satisfies Partial<Handlers>;
