// Making content of what was uploaded: checked against its hash, given its type, put into its place.
import { createHash } from "node:crypto";
import { allowsType, store, WireError } from "@parley/contracts";
import type { PoolClient } from "../database.ts";
import { signatureType, TextCheck } from "./media-type.ts";
import type { BlobPlaces } from "./place.ts";

export interface BlobRules {
  maxBytes: number;
  /** Patterns of types that are let in. */
  types: readonly string[];
  /** For content above `databaseBytes`. */
  places: BlobPlaces;
}

/** Smaller content stays in the database also where there is another place. */
const databaseBytes = 256 * 1024;

export interface Upload {
  id: string;
  sha256: string;
  bytes: number;
}

/** Writers and removers of one content take turns. */
export async function lockContent(client: PoolClient, sha256: string): Promise<void> {
  await client.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [sha256]);
}

/** Keeps the upload's content under its hash; the caller holds the content's lock. */
export async function keepContent(client: PoolClient, upload: Upload, rules: BlobRules): Promise<void> {
  const mediaType = await inspect(client, upload);
  if (!allowsType(rules.types, mediaType)) {
    throw new WireError("INVALID_INPUT", `files of the type ${mediaType} are not accepted here`);
  }
  const place = outsidePlace(upload, rules);
  const { sha256, bytes } = upload;
  if (place !== null) await place.write({ sha256, bytes, chunks: () => chunksOf(client, upload) });
  await client.query(
    `INSERT INTO parley.blobs (sha256, bytes, media_type, place) VALUES ($1, $2, $3, $4)
     ON CONFLICT (sha256) DO UPDATE SET
       bytes = excluded.bytes, media_type = excluded.media_type, place = excluded.place, touched_at = now(), doomed_at = NULL`,
    [upload.sha256, upload.bytes, mediaType, place?.name ?? "database"],
  );
  if (place !== null) return;
  await client.query(
    `INSERT INTO parley.blob_chunks (sha256, n, data)
     SELECT $1, n, data FROM parley.blob_upload_chunks WHERE upload_id = $2 ON CONFLICT DO NOTHING`,
    [upload.sha256, upload.id],
  );
}

/** Null: it stays in the database. */
function outsidePlace({ bytes }: Pick<Upload, "bytes">, { places }: BlobRules): BlobPlaces["preferred"] {
  return bytes > databaseBytes ? places.preferred : null;
}

/**
 * Before content goes to a place outside: a row that is to be removed, which `keepContent` makes one that is kept. What dies in between leaves
 * nothing that nobody would remove.
 */
export async function announceOutside(client: PoolClient, upload: Upload, rules: BlobRules): Promise<void> {
  const place = outsidePlace(upload, rules);
  if (place === null) return;
  await client.query(
    `INSERT INTO parley.blobs (sha256, bytes, media_type, place, doomed_at) VALUES ($1, $2, 'application/octet-stream', $3, now())
     ON CONFLICT (sha256) DO NOTHING`,
    [upload.sha256, upload.bytes, place.name],
  );
}

async function inspect(client: PoolClient, upload: Upload): Promise<string> {
  const hash = createHash("sha256");
  const text = new TextCheck();
  let signature: string | undefined;
  let first = true;
  for await (const chunk of chunksOf(client, upload)) {
    if (first) signature = await signatureType(chunk);
    first = false;
    hash.update(chunk);
    if (signature === undefined) text.add(chunk);
  }
  if (hash.digest("hex") !== upload.sha256) {
    throw new WireError("INVALID_INPUT", "the content that was sent has another hash than was announced");
  }
  return signature ?? (text.isText ? "text/plain" : "application/octet-stream");
}

async function* chunksOf(client: PoolClient, { id, bytes }: Upload): AsyncGenerator<Buffer> {
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
