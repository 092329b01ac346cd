// Deletes content that no session refers to. The row is deleted first, under a lock that references also take; its external object is
// removed after that.
import type { Logger } from "@parley/chassis";
import type { Database, PoolClient } from "../db/database.ts";
import { runTransaction } from "../db/operation.ts";
import type { BlobBackends } from "../blobs/backend.ts";
import { release, removeOrphans } from "../blobs/orphans.ts";

const batch = 100;
/** An upload that is not complete after this time is deleted. */
const uploadHours = 1;

/** An older store created rows with `doomed_at`: content to be removed, or an unfinished upload. */
const over = `(doomed_at IS NULL AND touched_at < now() - $1 * interval '1 hour' OR doomed_at <= now())`;
const unneeded = "NOT EXISTS (SELECT FROM parley.blob_refs WHERE blob_refs.sha256 = blobs.sha256)";

export interface BlobCollection {
  keepHours: number;
  backends: BlobBackends;
}

/** Deletes one batch; returns how many contents are certainly gone, in the database or elsewhere. */
export async function collectUnreferenced(database: Database, options: BlobCollection, log: Logger): Promise<number> {
  await database.pool.query(
    `DELETE FROM parley.blob_uploads WHERE id IN (
       SELECT id FROM parley.blob_uploads WHERE created_at < now() - $1 * interval '1 hour' LIMIT ${batch})`,
    [uploadHours],
  );
  const { rows } = await database.pool.query<{ sha256: string }>(
    `SELECT sha256 FROM parley.blobs WHERE ${over} AND ${unneeded} ORDER BY touched_at LIMIT ${batch}`,
    [options.keepHours],
  );
  let deleted = 0;
  for (const { sha256 } of rows) {
    if (await runTransaction(database, (client) => forget(client, sha256, options.keepHours))) deleted += 1;
  }
  return deleted + (await removeOrphans(database, options.backends, log));
}

/** Returns true when no external object remains. Two statements, because the second one sees the references of the previous lock holder. */
async function forget(client: PoolClient, sha256: string, keepHours: number): Promise<boolean> {
  const locked = await client.query(`SELECT FROM parley.blobs WHERE sha256 = $2 AND ${over} FOR UPDATE`, [
    keepHours,
    sha256,
  ]);
  if (locked.rowCount !== 1) return false;
  const { rowCount } = await client.query(`SELECT FROM parley.blobs WHERE sha256 = $1 AND ${unneeded}`, [sha256]);
  if (rowCount !== 1) return false;
  return (await release(client, sha256)) === "database";
}
