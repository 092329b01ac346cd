// Leases of connections that must have exactly one owner. Each grant raises the fence; leases expire by PostgreSQL's clock.
import { leaseReleased, WireError } from "@parley/contracts";
import { withClient } from "../../db/database.ts";
import type { Handlers } from "../handler.ts";

export const leaseHandlers = {
  async leaseAcquire({ database }, input) {
    const taken = await database.query<{ fence: number; cursor: string | null }>(
      `INSERT INTO parley.leases AS lease (name, owner, fence, expires_at)
       SELECT $1, $2, 1, now() + $3 * interval '1 millisecond'
       WHERE NOT EXISTS (SELECT FROM parley.account_pauses WHERE channel || ':' || account = $1)
       ON CONFLICT (name) DO UPDATE SET owner = $2, fence = lease.fence + 1, expires_at = now() + $3 * interval '1 millisecond'
       WHERE lease.owner IS NULL OR lease.owner = $2 OR lease.expires_at < now()
       RETURNING fence, cursor`,
      [input.name, input.owner, input.ttlMs],
    );
    const granted = taken.rows[0];
    if (granted !== undefined) return { granted: true, ...granted, holder: input.owner };
    const held = await database.query<{ fence: number; owner: string | null }>(
      "SELECT fence, owner FROM parley.leases WHERE name = $1",
      [input.name],
    );
    // A paused account may never have had a lease.
    const row = held.rows[0];
    return { granted: false, fence: row?.fence ?? 0, cursor: null, holder: row?.owner ?? null };
  },

  async leaseRenew({ database }, input) {
    const { rowCount } = await database.query(
      "UPDATE parley.leases SET expires_at = now() + $3 * interval '1 millisecond' WHERE name = $1 AND fence = $2 AND owner IS NOT NULL",
      [input.name, input.fence, input.ttlMs],
    );
    if (rowCount !== 1) throw new WireError("FENCED", `lease ${input.name}: fence ${input.fence} is over`);
    return {};
  },

  async leaseCheckpoint({ database }, input) {
    const { rowCount } = await database.query("UPDATE parley.leases SET cursor = $3 WHERE name = $1 AND fence = $2", [
      input.name,
      input.fence,
      input.cursor,
    ]);
    if (rowCount !== 1) throw new WireError("FENCED", `lease ${input.name}: fence ${input.fence} is over`);
    return {};
  },

  async leaseRelease({ database, bus }, input) {
    await withClient(database, (client) =>
      client.query("UPDATE parley.leases SET owner = NULL, expires_at = now() WHERE name = $1 AND fence = $2", [
        input.name,
        input.fence,
      ]),
    );
    bus.publish(leaseReleased, { name: input.name });
    return {};
  },
} satisfies Partial<Handlers>;
