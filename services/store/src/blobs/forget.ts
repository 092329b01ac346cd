// Removing content that no session refers to. First it is doomed, under a lock that references take too; then it is removed
// from its place; then its row goes. Whatever dies in between is finished by the next round.
import type { Logger } from "@parley/chassis";
import type { Database, PoolClient } from "../database.ts";
import { transact } from "../transaction.ts";
import { lockContent } from "./keep.ts";
import type { BlobPlaces } from "./place.ts";

const batch = 100;
/** An upload that was not finished by then is over. */
const uploadHours = 1;

export interface ForgetBlobs {
  keepHours: number;
  places: BlobPlaces;
}

/** Removes one batch; returns how many contents went. */
export async function forgetBlobs(database: Database, options: ForgetBlobs, log: Logger): Promise<number> {
  await database.pool.query(
    `DELETE FROM parley.blob_uploads WHERE id IN (
       SELECT id FROM parley.blob_uploads WHERE created_at < now() - $1 * interval '1 hour' LIMIT ${batch})`,
    [uploadHours],
  );
  await transact(database, (client) => doom(client, options.keepHours));
  const { rows } = await database.pool.query<{ sha256: string }>(
    `SELECT sha256 FROM parley.blobs WHERE doomed_at <= now() ORDER BY doomed_at LIMIT ${batch}`,
  );
  let removed = 0;
  for (const { sha256 } of rows) {
    try {
      if (await transact(database, (client) => remove(client, sha256, options.places))) removed += 1;
    } catch (error) {
      log.warn({ err: error, sha256 }, "content could not be removed; tried again later");
      await postpone(database, sha256);
    }
  }
  return removed;
}

/** Two statements: the second one sees the references of whoever held the lock before. */
async function doom(client: PoolClient, keepHours: number): Promise<void> {
  const { rows } = await client.query<{ sha256: string }>(
    `SELECT sha256 FROM parley.blobs
     WHERE doomed_at IS NULL AND touched_at < now() - $1 * interval '1 hour'
       AND NOT EXISTS (SELECT FROM parley.blob_refs WHERE blob_refs.sha256 = blobs.sha256)
     ORDER BY touched_at LIMIT ${batch} FOR UPDATE SKIP LOCKED`,
    [keepHours],
  );
  await client.query(
    `UPDATE parley.blobs SET doomed_at = now()
     WHERE sha256 = ANY($1) AND NOT EXISTS (SELECT FROM parley.blob_refs WHERE blob_refs.sha256 = blobs.sha256)`,
    [rows.map(({ sha256 }) => sha256)],
  );
}

/** What could not be removed lets whatever else is doomed go first. */
async function postpone(database: Database, sha256: string): Promise<void> {
  await database.pool.query("UPDATE parley.blobs SET doomed_at = now() WHERE sha256 = $1 AND doomed_at <= now()", [
    sha256,
  ]);
}

async function remove(client: PoolClient, sha256: string, places: BlobPlaces): Promise<boolean> {
  await lockContent(client, sha256);
  const { rows } = await client.query<{ place: string }>(
    "SELECT place FROM parley.blobs WHERE sha256 = $1 AND doomed_at <= now() FOR UPDATE",
    [sha256],
  );
  const kept = rows[0];
  if (kept === undefined) return false;
  if (kept.place !== "database") await places.named(kept.place).remove(sha256);
  await client.query("DELETE FROM parley.blobs WHERE sha256 = $1", [sha256]);
  return true;
}
