// What may lie outside of the database and is no content's: it is being written, or its content was forgotten. Each is in a row before
// it is written, and until its removal is known to have been carried out; whatever dies in between, the next round finishes. A name is
// given once: a removal that is carried out late, after we have given it up, meets nothing that is needed.
import type { Logger } from "@parley/chassis";
import { WireError } from "@parley/contracts";
import type { Database, PoolClient } from "../database.ts";
import type { BlobPlaces } from "./place.ts";

/** How long what is being written is left alone: much longer than any caller asks for it to be kept. */
const writingMinutes = 10;
const batch = 100;

export interface Stray {
  place: string;
  object: string;
}

/** Before anything of it is written. */
export async function announceStray(database: Database, { place, object }: Stray): Promise<void> {
  await database.pool.query(
    `INSERT INTO parley.blob_strays (place, object, remove_at) VALUES ($1, $2, now() + interval '${writingMinutes} minutes')`,
    [place, object],
  );
}

/** It becomes a content's with the caller's transaction. Throws UNAVAILABLE where its removal may have begun. */
export async function adoptStray(client: PoolClient, { place, object }: Stray): Promise<void> {
  const { rowCount } = await client.query(
    "DELETE FROM parley.blob_strays WHERE place = $1 AND object = $2 AND NOT removing",
    [place, object],
  );
  if (rowCount !== 1) throw new WireError("UNAVAILABLE", "the content was removed while it was being kept; try again");
}

/** It has been written, and nobody needs it. */
export async function abandonStray(client: PoolClient, { place, object }: Stray): Promise<void> {
  await client.query("UPDATE parley.blob_strays SET remove_at = now() WHERE place = $1 AND object = $2", [
    place,
    object,
  ]);
}

/**
 * Takes a content's row away; what lies outside becomes a stray in the same transaction. Returns the place; undefined where there is no
 * such row. The caller has locked it.
 */
export async function letGo(client: PoolClient, sha256: string): Promise<string | undefined> {
  // A row with a time of its own was made by an older store, which may be writing until then.
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

/** Removes one batch of those whose time has come, in no transaction; returns how many are gone for certain. */
export async function removeStrays(database: Database, places: BlobPlaces, log: Logger): Promise<number> {
  const { rows } = await database.pool.query<Stray>(
    `UPDATE parley.blob_strays SET removing = true WHERE (place, object) IN (
       SELECT place, object FROM parley.blob_strays WHERE remove_at <= now() ORDER BY remove_at LIMIT ${batch} FOR UPDATE SKIP LOCKED)
     RETURNING place, object`,
  );
  let removed = 0;
  for (const stray of rows) {
    try {
      await places.named(stray.place).remove(stray.object);
      await database.pool.query("DELETE FROM parley.blob_strays WHERE place = $1 AND object = $2", [
        stray.place,
        stray.object,
      ]);
      removed += 1;
    } catch (error) {
      log.warn({ err: error, ...stray }, "an attachment's object could not be removed; tried again later");
      // Whatever else is due goes first.
      await database.pool.query(
        "UPDATE parley.blob_strays SET remove_at = now() WHERE place = $1 AND object = $2 AND remove_at <= now()",
        [stray.place, stray.object],
      );
    }
  }
  return removed;
}
