// Registry of orphaned objects: objects that are being written, or whose content was deleted. Each has a row before it is written and
// until its removal is confirmed, so that the next run completes work that a crash interrupted. Object names are never reused: a
// removal that completes late, after a timeout, cannot remove a needed object.
import type { Logger } from "@parley/chassis";
import { WireError } from "@parley/contracts";
import type { Database, PoolClient } from "../db/database.ts";
import type { BlobBackends } from "./backend.ts";

/** How long an object that is being written is not removed: much longer than any caller waits for the write. */
const writingMinutes = 10;
const batch = 100;

export interface OrphanedObject {
  place: string;
  object: string;
}

/** Called before the object is written. */
export async function register(database: Database, { place, object }: OrphanedObject): Promise<void> {
  await database.pool.query(
    `INSERT INTO parley.blob_strays (place, object, remove_at) VALUES ($1, $2, now() + interval '${writingMinutes} minutes')`,
    [place, object],
  );
}

/** The object becomes stored content with the caller's transaction. Throws UNAVAILABLE when its removal may have begun. */
export async function adopt(client: PoolClient, { place, object }: OrphanedObject): Promise<void> {
  const { rowCount } = await client.query(
    "DELETE FROM parley.blob_strays WHERE place = $1 AND object = $2 AND NOT removing",
    [place, object],
  );
  if (rowCount !== 1)
    throw new WireError("UNAVAILABLE", "the content was removed while it was being stored; try again");
}

/** The object was written but is not needed. */
export async function abandon(client: PoolClient, { place, object }: OrphanedObject): Promise<void> {
  await client.query("UPDATE parley.blob_strays SET remove_at = now() WHERE place = $1 AND object = $2", [
    place,
    object,
  ]);
}

/**
 * Deletes a content's row; its external object is registered for removal in the same transaction. Returns the backend; undefined when there
 * is no such row. The caller has locked it.
 */
export async function release(client: PoolClient, sha256: string): Promise<string | undefined> {
  // An older store created rows with `doomed_at` and may be writing until that time.
  const { rows } = await client.query<{ place: string }>(
    `WITH gone AS (
       DELETE FROM parley.blobs WHERE sha256 = $1 RETURNING place, coalesce(object, sha256) AS object, doomed_at
     ), strayed AS (
       INSERT INTO parley.blob_strays (place, object, remove_at)
       SELECT place, object, greatest(now(), doomed_at) FROM gone WHERE place <> 'database'
       ON CONFLICT (place, object) DO UPDATE SET remove_at = excluded.remove_at
     )
     SELECT place FROM gone`,
    [sha256],
  );
  return rows[0]?.place;
}

/** Removes one batch of due objects, outside of a transaction; returns how many are certainly gone. */
export async function removeOrphans(database: Database, backends: BlobBackends, log: Logger): Promise<number> {
  const { rows } = await database.pool.query<OrphanedObject>(
    `UPDATE parley.blob_strays SET removing = true WHERE (place, object) IN (
       SELECT place, object FROM parley.blob_strays WHERE remove_at <= now() ORDER BY remove_at LIMIT ${batch} FOR UPDATE SKIP LOCKED)
     RETURNING place, object`,
  );
  let removed = 0;
  for (const stray of rows) {
    try {
      await backends.named(stray.place).remove(stray.object);
      await database.pool.query("DELETE FROM parley.blob_strays WHERE place = $1 AND object = $2", [
        stray.place,
        stray.object,
      ]);
      removed += 1;
    } catch (error) {
      log.warn(
        { err: error, place: stray.place, object: stray.object },
        "attachment object not removed: retried later",
      );
      // Other due objects come first.
      await database.pool.query(
        "UPDATE parley.blob_strays SET remove_at = now() WHERE place = $1 AND object = $2 AND remove_at <= now()",
        [stray.place, stray.object],
      );
    }
  }
  return removed;
}
