// Accounts of channels that were added while the cluster ran. The gateways read them and merge them with those of parley.toml.
import { accountChanged, leaseReleased, WireError, type store } from "@parley/contracts";
import { withClient, type PoolClient } from "../../db/database.ts";
import { runTransaction } from "../../db/operation.ts";
import type { Handlers } from "../handler.ts";

const maxAccounts = 200;

export const addedAccountHandlers = {
  async accountList({ database }) {
    const { rows } = await withClient(database, (client) =>
      client.query<{ channel: string; account: string; settings: string; revision: string }>(
        "SELECT channel, account, settings, revision::text FROM parley.channel_accounts ORDER BY channel, account",
      ),
    );
    return {
      accounts: rows.map((row) => ({
        ...row,
        settings: JSON.parse(row.settings) as store.AddedAccount["settings"],
      })),
    };
  },

  async accountPut({ database, bus }, { channel, account, settings, identity, by }) {
    const name = `${channel}:${account}`;
    await runTransaction(database, async (client) => {
      const { rows } = await client.query<{ count: number; identity: string | null }>(
        `SELECT count(*)::int AS count, max(identity) FILTER (WHERE channel = $1 AND account = $2) AS identity
         FROM parley.channel_accounts`,
        [channel, account],
      );
      const before = rows[0];
      const { rowCount } = await client.query(
        `INSERT INTO parley.channel_accounts AS known (channel, account, settings, identity, added_by)
         SELECT $1, $2, $3, $4, $5
         WHERE $6 < ${maxAccounts} OR EXISTS (SELECT FROM parley.channel_accounts WHERE channel = $1 AND account = $2)
         ON CONFLICT (channel, account) DO UPDATE SET settings = $3, identity = coalesce($4, known.identity), added_by = $5,
           revision = DEFAULT, changed_at = now()`,
        [channel, account, JSON.stringify(settings), identity, by, before?.count ?? 0],
      );
      if (rowCount !== 1) throw new WireError("CONFLICT", `there are already ${maxAccounts} added accounts`);
      const known = before?.identity ?? null;
      if (known !== null && identity !== null && known !== identity) await forgetLeases(client, name);
    });
    bus.publish(accountChanged, { channel, account });
    return {};
  },

  async accountRemove({ database, bus }, { channel, account }) {
    const name = `${channel}:${account}`;
    await runTransaction(database, async (client) => {
      const { rowCount } = await client.query(
        "DELETE FROM parley.channel_accounts WHERE channel = $1 AND account = $2",
        [channel, account],
      );
      if (rowCount !== 1) return;
      await client.query("DELETE FROM parley.account_pauses WHERE channel = $1 AND account = $2", [channel, account]);
      await client.query("DELETE FROM parley.account_moves WHERE channel = $1 AND account = $2", [channel, account]);
      await client.query("DELETE FROM parley.account_outages WHERE channel = $1 AND account = $2", [channel, account]);
      await forgetLeases(client, name);
      await client.query(
        `UPDATE parley.outbox SET state = 'dropped', settled_at = now(), error = 'the account was removed'
         WHERE channel = $1 AND account = $2 AND state = 'pending'`,
        [channel, account],
      );
    });
    bus.publish(accountChanged, { channel, account });
    bus.publish(leaseReleased, { name });
    return {};
  },
} satisfies Partial<Handlers>;

/** Ends the leases of an account. The higher fence ends a connection also on a replica that does not receive the hint, and it saves no cursor. */
async function forgetLeases(client: PoolClient, name: string): Promise<void> {
  await client.query(
    `UPDATE parley.leases SET owner = NULL, cursor = NULL, fence = fence + 1, expires_at = now()
     WHERE split_part(name, '#', 1) = $1`,
    [name],
  );
}
