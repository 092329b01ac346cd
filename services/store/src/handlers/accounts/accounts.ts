// Accounts on channels: their status for operators, and pauses that hold on all replicas.
import { leaseReleased, type store } from "@parley/contracts";
import { withClient, type PoolClient } from "../../db/database.ts";
import { announceOutgoing } from "../outbox/enqueue.ts";
import type { Handlers } from "../handler.ts";

/** Whether an account is paused. */
export async function isPaused(client: PoolClient, channel: string, account: string): Promise<boolean> {
  const { rowCount } = await client.query({
    name: "account-paused",
    text: "SELECT FROM parley.account_pauses WHERE channel = $1 AND account = $2",
    values: [channel, account],
  });
  return rowCount === 1;
}

const recently = "now() - interval '1 day'";

export const accountHandlers = {
  async accountStatus({ database }, { accounts }) {
    const { rows } = await database.query<store.AccountStatus & { pausedAt: string | null; pausedBy: string | null }>(
      `SELECT a.channel, a.account,
         (SELECT string_agg(DISTINCT owner, ', ') FROM parley.leases
            WHERE split_part(name, '#', 1) = a.channel || ':' || a.account AND expires_at > now()) AS owner,
         m.replica AS "movedTo", p.paused_at AS "pausedAt", p.paused_by AS "pausedBy",
         (SELECT max(received_at) FROM parley.inbox i WHERE i.channel = a.channel AND i.account = a.account) AS "lastInAt",
         o.last_out AS "lastOutAt", coalesce(o.waiting, 0)::int AS waiting, coalesce(o.unknown, 0)::int AS unknown,
         o.waiting_since AS "waitingSince", o.waiting_reason AS "waitingReason",
         (SELECT error FROM parley.outbox e WHERE e.channel = a.channel AND e.account = a.account AND e.error IS NOT NULL
            AND e.created_at > ${recently} ORDER BY e.id DESC LIMIT 1) AS "lastError"
       FROM unnest($1::text[], $2::text[]) AS a(channel, account)
       LEFT JOIN parley.account_pauses p ON p.channel = a.channel AND p.account = a.account
       LEFT JOIN parley.account_moves m ON m.channel = a.channel AND m.account = a.account
       LEFT JOIN LATERAL (
         SELECT count(*) FILTER (WHERE state IN ('pending', 'sending')) AS waiting,
                min(created_at) FILTER (WHERE state IN ('pending', 'sending')) AS waiting_since,
                (array_agg(error ORDER BY id) FILTER (WHERE state IN ('pending', 'sending') AND error IS NOT NULL))[1] AS waiting_reason,
                count(*) FILTER (WHERE state = 'unknown' AND created_at > ${recently}) AS unknown,
                max(settled_at) FILTER (WHERE state = 'sent') AS last_out
         FROM parley.outbox WHERE channel = a.channel AND account = a.account
       ) o ON true`,
      [accounts.map(({ channel }) => channel), accounts.map(({ account }) => account)],
    );
    return {
      accounts: rows.map(({ pausedAt, pausedBy, ...row }) => ({
        ...row,
        paused: pausedAt === null ? null : { at: pausedAt, by: pausedBy ?? "" },
      })),
    };
  },

  async accountPause({ database, bus }, { channel, account, paused, by }) {
    const name = `${channel}:${account}`;
    await withClient(database, async (client) => {
      if (paused) {
        await client.query(
          `WITH pause AS (
             INSERT INTO parley.account_pauses (channel, account, paused_by) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING
           )
           UPDATE parley.leases SET owner = NULL, fence = fence + 1, expires_at = now() WHERE split_part(name, '#', 1) = $4`,
          [channel, account, by, name],
        );
      } else {
        await client.query("DELETE FROM parley.account_pauses WHERE channel = $1 AND account = $2", [channel, account]);
      }
    });
    if (paused) return {};
    bus.publish(leaseReleased, { name });
    announceOutgoing(bus, [{ channel, account }]);
    return {};
  },

  async accountMove({ database }, { channel, account, replica, by }) {
    await withClient(database, (client) =>
      replica === null
        ? client.query("DELETE FROM parley.account_moves WHERE channel = $1 AND account = $2", [channel, account])
        : client.query(
            `INSERT INTO parley.account_moves (channel, account, replica, moved_by) VALUES ($1, $2, $3, $4)
             ON CONFLICT (channel, account) DO UPDATE SET replica = $3, moved_by = $4, moved_at = now()`,
            [channel, account, replica, by],
          ),
    );
    return {};
  },
} satisfies Partial<Handlers>;
