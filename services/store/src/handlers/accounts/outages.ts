// Tells the owner about accounts that cannot work, once for each change, however many gateways report it.
import { newId } from "@parley/contracts";
import { runTransaction } from "../../db/operation.ts";
import { announceOutgoing, enqueueStandalone } from "../outbox/enqueue.ts";
import { ownerAddress } from "../outbox/owner-address.ts";
import type { Handlers } from "../handler.ts";

const change = {
  down: "INSERT INTO parley.account_outages (channel, account) VALUES ($1, $2) ON CONFLICT DO NOTHING",
  up: "DELETE FROM parley.account_outages WHERE channel = $1 AND account = $2",
} as const;

export const outageHandlers = {
  async accountOutages({ database }) {
    const { rows } = await database.query<{ channel: string; account: string }>(
      "SELECT channel, account FROM parley.account_outages",
    );
    return { accounts: rows };
  },

  async accountOutage({ database, bus }, { channel, account, isDown, text, expiresInMs }) {
    const { told, address } = await runTransaction(database, async (client) => {
      const owner = await ownerAddress(client, { channel, account });
      // The end of an outage is recorded even when nobody can be told.
      if (owner === null && isDown) return { told: false, address: null };
      const { rowCount } = await client.query(isDown ? change.down : change.up, [channel, account]);
      if (rowCount !== 1 || owner === null) return { told: true, address: null };
      await enqueueStandalone(client, newId(), { address: owner, text, expiresInMs });
      return { told: true, address: owner };
    });
    if (address !== null) announceOutgoing(bus, [address]);
    return { told };
  },
} satisfies Partial<Handlers>;
