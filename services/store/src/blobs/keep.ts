// Making content of what was uploaded: checked against its hash, given its type, put into its place.
import { createHash } from "node:crypto";
import { allowsType, store, WireError } from "@parley/contracts";
import type { Database, PoolClient } from "../database.ts";
import { signatureType, TextCheck } from "./media-type.ts";
import type { BlobPlace, BlobPlaces } from "./place.ts";

export interface BlobRules {
  maxBytes: number;
  /** Patterns of types that are let in. */
  types: readonly string[];
  /** For content above `databaseBytes`. */
  places: BlobPlaces;
}

/** Smaller content stays in the database also where there is another place. */
const databaseBytes = 256 * 1024;
/** How long what is being written outside is left alone: much longer than any caller asks for it to be kept. */
const announcedMinutes = 10;

export interface Upload {
  id: string;
  sha256: string;
  bytes: number;
}

/** Writers and removers of one content take turns. */
export async function lockContent(client: PoolClient, sha256: string): Promise<void> {
  await client.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [sha256]);
}

/** Content that has been written to a place outside, and the row that says so until it is kept. */
export interface OutsideContent {
  mediaType: string;
  place: BlobPlace;
  /** The announcement it belongs to: PostgreSQL's time, to the microsecond. */
  announcedUntil: string;
}

/** Keeps small content under its hash; the caller holds the content's lock. */
export async function keepInside(client: PoolClient, upload: Upload, rules: BlobRules): Promise<void> {
  const mediaType = await inspect(chunksOf(client, upload), upload, rules);
  await client.query(
    `INSERT INTO parley.blobs (sha256, bytes, media_type, place) VALUES ($1, $2, $3, 'database')
     ON CONFLICT (sha256) DO UPDATE SET
       bytes = excluded.bytes, media_type = excluded.media_type, place = excluded.place, touched_at = now(), doomed_at = NULL`,
    [upload.sha256, upload.bytes, mediaType],
  );
  await client.query(
    `INSERT INTO parley.blob_chunks (sha256, n, data)
     SELECT $1, n, data FROM parley.blob_upload_chunks WHERE upload_id = $2 ON CONFLICT DO NOTHING`,
    [upload.sha256, upload.id],
  );
}

/** Keeps what `writeOutside` has written; the caller holds the content's lock. Throws UNAVAILABLE where it has been removed since. */
export async function keepOutside(client: PoolClient, upload: Upload, written: OutsideContent): Promise<void> {
  const { rowCount } = await client.query(
    `UPDATE parley.blobs SET bytes = $2, media_type = $3, place = $4, touched_at = now(), doomed_at = NULL
     WHERE sha256 = $1 AND doomed_at::text = $5`,
    [upload.sha256, upload.bytes, written.mediaType, written.place.name, written.announcedUntil],
  );
  if (rowCount !== 1) throw new WireError("UNAVAILABLE", "the content was removed while it was being kept; try again");
}

/** Where an upload goes; null: it stays in the database. */
export function placeFor({ bytes }: Pick<Upload, "bytes">, { places }: BlobRules): BlobPlace | null {
  return bytes > databaseBytes ? places.preferred : null;
}

/**
 * Writes content to a place outside, in no transaction: a place may take longer than one lasts. Before it, a row says that the content is to be
 * removed after a while: what dies in between leaves nothing that nobody would remove.
 */
export async function writeOutside(
  database: Database,
  place: BlobPlace,
  upload: Upload,
  rules: BlobRules,
): Promise<OutsideContent> {
  const { sha256, bytes } = upload;
  const mediaType = await inspect(chunksOf(database.pool, upload), upload, rules);
  const announcedUntil = await announce(database, place, upload);
  await place.write({ sha256, bytes, chunks: () => chunksOf(database.pool, upload) });
  return { mediaType, place, announcedUntil };
}

/** Two that announce the same content at the same time share the announcement. */
async function announce(database: Database, place: BlobPlace, { sha256, bytes }: Upload): Promise<string> {
  const { rows } = await database.pool.query<{ until: string | null }>(
    `INSERT INTO parley.blobs (sha256, bytes, media_type, place, doomed_at)
     VALUES ($1, $2, 'application/octet-stream', $3, now() + interval '${announcedMinutes} minutes')
     ON CONFLICT (sha256) DO UPDATE SET doomed_at = CASE
       WHEN blobs.doomed_at <= now() THEN excluded.doomed_at ELSE blobs.doomed_at END
     RETURNING doomed_at::text AS until`,
    [sha256, bytes, place.name],
  );
  // Null: somebody has kept it meanwhile, and the caller finds that.
  return rows[0]?.until ?? "";
}

/** The type of what was sent. Throws INVALID_INPUT for what is not what was announced, or of a type that is not let in. */
async function inspect(chunks: AsyncIterable<Buffer>, upload: Upload, { types }: BlobRules): Promise<string> {
  const hash = createHash("sha256");
  const text = new TextCheck();
  let signature: string | undefined;
  let first = true;
  for await (const chunk of chunks) {
    if (first) signature = await signatureType(chunk);
    first = false;
    hash.update(chunk);
    if (signature === undefined) text.add(chunk);
  }
  if (hash.digest("hex") !== upload.sha256) {
    throw new WireError("INVALID_INPUT", "the content that was sent has another hash than was announced");
  }
  const mediaType = signature ?? (text.isText ? "text/plain" : "application/octet-stream");
  if (!allowsType(types, mediaType)) {
    throw new WireError("INVALID_INPUT", `files of the type ${mediaType} are not accepted here`);
  }
  return mediaType;
}

async function* chunksOf(client: Pick<PoolClient, "query">, { id, bytes }: Upload): AsyncGenerator<Buffer> {
  const count = Math.ceil(bytes / store.blobChunkBytes);
  for (let n = 0; n < count; n++) {
    const { rows } = await client.query<{ data: Buffer }>(
      "SELECT data FROM parley.blob_upload_chunks WHERE upload_id = $1 AND n = $2",
      [id, n],
    );
    if (rows[0] === undefined) throw new WireError("INVALID_INPUT", `chunk ${n} of ${count} was never sent`);
    yield rows[0].data;
  }
}
