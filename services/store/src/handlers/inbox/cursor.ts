// The cursor of a connection: how far its messages are stored.
import { WireError } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";

/** Saves the cursor in the transaction that stores the message. Throws FENCED when the caller no longer owns the connection. */
export async function saveCursor(
  client: PoolClient,
  lease: { name: string; fence: number; cursor: string },
): Promise<void> {
  const { rowCount } = await client.query("UPDATE parley.leases SET cursor = $3 WHERE name = $1 AND fence = $2", [
    lease.name,
    lease.fence,
    lease.cursor,
  ]);
  if (rowCount !== 1) throw new WireError("FENCED", `lease ${lease.name}: fence ${lease.fence} is no longer valid`);
}
