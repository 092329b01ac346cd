// The fence of an account's connection: only its owner sends.
import { WireError } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";

/** Throws FENCED when another replica holds the lease; the lease stays as it is until the transaction ends. */
export async function checkLease(client: PoolClient, lease: { name: string; fence: number }): Promise<void> {
  const { rowCount } = await client.query("SELECT FROM parley.leases WHERE name = $1 AND fence = $2 FOR SHARE", [
    lease.name,
    lease.fence,
  ]);
  if (rowCount !== 1) throw new WireError("FENCED", `lease ${lease.name}: fence ${lease.fence} is no longer valid`);
}
