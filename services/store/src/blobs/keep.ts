// Making content of what was uploaded: checked against its hash, given its type, put into its place.
import { createHash } from "node:crypto";
import { allowsType, newId, store, WireError } from "@parley/contracts";
import type { Database, PoolClient } from "../database.ts";
import { signatureType, TextCheck } from "./media-type.ts";
import type { BlobPlace, BlobPlaces } from "./place.ts";
import { adoptStray, announceStray, letGo } from "./strays.ts";

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

/** Those who keep one content take turns. */
export async function lockContent(client: PoolClient, sha256: string): Promise<void> {
  await client.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [sha256]);
}

/** Content that has been written to a place outside, and is not kept yet. */
export interface OutsideContent {
  mediaType: string;
  /** The place's name. */
  place: string;
  object: string;
}

/** Keeps small content under its hash; the caller holds the content's lock, and there is no such content. */
export async function keepInside(client: PoolClient, upload: Upload, rules: BlobRules): Promise<void> {
  const mediaType = await inspect(chunksOf(client, upload), upload, rules);
  await insert(client, upload, { mediaType, place: "database", object: null });
  await client.query(
    `INSERT INTO parley.blob_chunks (sha256, n, data)
     SELECT $1, n, data FROM parley.blob_upload_chunks WHERE upload_id = $2`,
    [upload.sha256, upload.id],
  );
}

/** Throws INVALID_INPUT where what was sent is not the announced content: who names kept content has to have it. */
export async function requireWhole(client: PoolClient, upload: Upload, rules: BlobRules): Promise<void> {
  await inspect(chunksOf(client, upload), upload, rules);
}

/**
 * Keeps what `writeOutside` has written; the caller holds the content's lock, and there is no such content. Throws UNAVAILABLE where
 * the object's removal may have begun.
 */
export async function keepOutside(client: PoolClient, upload: Upload, written: OutsideContent): Promise<void> {
  await adoptStray(client, written);
  await insert(client, upload, written);
}

async function insert(
  client: PoolClient,
  { sha256, bytes }: Upload,
  { mediaType, place, object }: { mediaType: string; place: string; object: string | null },
): Promise<void> {
  // An older store may have left a row that says that the content is being removed.
  await letGo(client, sha256);
  await client.query(
    "INSERT INTO parley.blobs (sha256, bytes, media_type, place, object) VALUES ($1, $2, $3, $4, $5)",
    [sha256, bytes, mediaType, place, object],
  );
}

/** Where an upload goes; null: it stays in the database. */
export function placeFor({ bytes }: Pick<Upload, "bytes">, { places }: BlobRules): BlobPlace | null {
  return bytes > databaseBytes ? places.preferred : null;
}

/**
 * Writes content to a place outside, in no transaction: a place may take longer than one lasts. Each time under a new name, which is
 * announced before: what dies in between leaves nothing that nobody would remove.
 */
export async function writeOutside(
  database: Database,
  place: BlobPlace,
  upload: Upload,
  rules: BlobRules,
): Promise<OutsideContent> {
  const { sha256, bytes } = upload;
  const mediaType = await inspect(chunksOf(database.pool, upload), upload, rules);
  const written = { mediaType, place: place.name, object: `${sha256}.${newId()}` };
  await announceStray(database, written);
  await place.write({ object: written.object, sha256, bytes, chunks: () => chunksOf(database.pool, upload) });
  return written;
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
