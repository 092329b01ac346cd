// Enqueues heartbeats in the owner's thread, once per slot, unless the thread is busy.
import { mainSessionKey, type OutputOf, type Sender, type store } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import { singleRow, runOperation } from "../../db/operation.ts";
import { enqueueSystemInput, sessionsOf } from "../inbox/system-input.ts";
import { ownerAddress } from "../outbox/owner-address.ts";
import { publishReady, type ReadyHint } from "../turns/notify.ts";
import type { Handlers } from "../handler.ts";

type Output = OutputOf<typeof store.heartbeatFire>;

/** The owner's thread. */
const route = mainSessionKey;

const sender: Sender = {
  channel: "internal",
  account: "heartbeat",
  conversation: "heartbeat",
  contact: { id: "heartbeat", name: "heartbeat" },
  role: "owner",
  origin: "heartbeat",
};

export const heartbeatHandlers = {
  async heartbeatFire({ database, bus }, input) {
    const wakes: ReadyHint[] = [];
    const output = await runOperation<Output>(database, input, {
      name: "heartbeat_fire",
      async run(client) {
        const externalId = `heartbeat:${input.slot}`;
        const sessionId = await lockThread(client);
        const known = await client.query<{ id: string }>(
          "SELECT id FROM parley.inbox WHERE channel = 'internal' AND account = 'heartbeat' AND external_id = $1",
          [externalId],
        );
        if (known.rows[0] !== undefined) return { result: { outcome: "known", inboxId: known.rows[0].id } };
        if (input.skipWhenBusy && (await isBusy(client, sessionId)))
          return { result: { outcome: "busy", inboxId: null } };
        const replyTo = await ownerAddress(client);
        const row = { route, account: "heartbeat", externalId, text: input.text, sender, replyTo };
        const { inboxId } = singleRow(await enqueueSystemInput(client, [row], wakes));
        const result: Output = { outcome: inboxId === null ? "known" : "fired", inboxId };
        return { result, memo: result };
      },
    });
    publishReady(bus, wakes);
    return output;
  },
} satisfies Partial<Handlers>;

/** The same lock as for starting a turn or adding input. */
async function lockThread(client: PoolClient): Promise<string> {
  const sessions = await sessionsOf(client, new Map([[route, null]]));
  const { rows } = await client.query<{ id: string }>("SELECT id FROM parley.sessions WHERE id = $1 FOR UPDATE", [
    sessions.get(route),
  ]);
  return singleRow(rows).id;
}

async function isBusy(client: PoolClient, sessionId: string): Promise<boolean> {
  const { rows } = await client.query<{ busy: boolean }>(
    `SELECT EXISTS (SELECT FROM parley.turns WHERE session_id = $1 AND state = 'running')
         OR EXISTS (SELECT FROM parley.inbox WHERE session_id = $1 AND state = 'queued') AS busy`,
    [sessionId],
  );
  return singleRow(rows).busy;
}
