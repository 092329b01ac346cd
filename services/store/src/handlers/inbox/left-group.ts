// Ends what waits in a group that the agent was removed from, and notifies the owner.
import type { store } from "@parley/contracts";
import type { InputOf, ReplyAddress } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import { addressOf } from "../../db/mappers.ts";
import { runOperation } from "../../db/operation.ts";
import { announceOutgoing, enqueueStandalone } from "../outbox/enqueue.ts";
import type { Handlers } from "../handler.ts";
import { dropContext } from "./group-context.ts";

type Left = InputOf<typeof store.groupLeave>;
interface Ended {
  messages: number;
  texts: number;
  turns: { sessionId: string; turnId: string }[];
}

/** Separates the id of a thread from that of its group. */
const separators = [":", "/"];
/** The inbox keeps ids as JSON, the outbox as they are. */
const isInGroup =
  "channel = $1 AND account = $2 AND (conversation = $3 OR starts_with(conversation, $4) OR starts_with(conversation, $5))";

export const groupHandlers = {
  async groupLeave({ database, bus }, input) {
    const recipients: ReplyAddress[] = [];
    const ended = await runOperation<Ended>(
      database,
      { opId: input.opId, epoch: null },
      {
        name: "group_leave",
        async run(client) {
          const result = await endWaiting(client, input);
          const owner = await ownerElsewhere(client, input);
          if (owner !== null) {
            await enqueueStandalone(client, input.opId, { ...input.toOwner, address: owner });
            recipients.push(owner);
          }
          return { result, memo: result };
        },
      },
    );
    announceOutgoing(bus, recipients);
    return ended;
  },
} satisfies Partial<Handlers>;

async function endWaiting(client: PoolClient, input: Left): Promise<Ended> {
  const stored = inInbox(input);
  // A claim locks the session while it takes rows, so no row is claimed and cancelled.
  await client.query(
    `SELECT FROM parley.sessions WHERE id IN (SELECT session_id FROM parley.inbox WHERE state = 'queued' AND ${isInGroup}) ORDER BY id FOR UPDATE`,
    stored,
  );
  const messages = await client.query(
    `UPDATE parley.inbox SET state = 'cancelled' WHERE state = 'queued' AND ${isInGroup}`,
    stored,
  );
  const turns = await client.query<Ended["turns"][number]>(
    `SELECT DISTINCT t.session_id AS "sessionId", t.id AS "turnId" FROM parley.turns t
     JOIN parley.inbox ON inbox.turn_id = t.id WHERE t.state = 'running' AND ${isInGroup}`,
    stored,
  );
  const { channel, account, group } = input;
  const ids = [channel, account, group, ...separators.map((separator) => `${group}${separator}`)];
  const texts = await client.query(
    `UPDATE parley.outbox SET state = 'dropped', settled_at = now(), error = 'the agent was removed from the group'
     WHERE state = 'pending' AND ${isInGroup}`,
    ids,
  );
  await dropContext(client, isInGroup, ids);
  return { messages: messages.rowCount ?? 0, texts: texts.rowCount ?? 0, turns: turns.rows };
}

function inInbox({ channel, account, group }: Pick<Left, "channel" | "account" | "group">): string[] {
  const open = JSON.stringify(group).slice(0, -1);
  return [channel, account, `${open}"`, ...separators.map((separator) => `${open}${separator}`)];
}

/** Where an owner wrote last, outside the group. */
async function ownerElsewhere(client: PoolClient, input: Left): Promise<ReplyAddress | null> {
  const { rows } = await client.query<{ reply_to: string }>(
    `SELECT reply_to FROM parley.inbox WHERE trust = 'owner' AND reply_to IS NOT NULL AND NOT (${isInGroup})
     ORDER BY received_at DESC LIMIT 1`,
    inInbox(input),
  );
  return addressOf(rows[0]?.reply_to ?? null);
}
