// Turns an upload into stored content: verifies its hash, detects its type, and writes it to its backend.
import { createHash } from "node:crypto";
import { allowsType, newId, store, WireError } from "@parley/contracts";
import type { Database, PoolClient, Queryable } from "../db/database.ts";
import { signatureType, TextCheck } from "./media-type.ts";
import type { BlobBackend, BlobBackends } from "./backend.ts";
import { adopt, register, release } from "./orphans.ts";

export interface BlobRules {
  maxBytes: number;
  /** Patterns of accepted types. */
  types: readonly string[];
  /** For content above `databaseBytes`. */
  backends: BlobBackends;
}

/** Content up to this size stays in the database even if there is another backend. */
const databaseBytes = 256 * 1024;

export interface Upload {
  id: string;
  sha256: string;
  bytes: number;
}

/** Serializes the transactions that store the same content. */
export async function lockContent(client: PoolClient, sha256: string): Promise<void> {
  await client.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [sha256]);
}

/** Content that was written outside of the database and has no row yet. */
export interface OutsideContent {
  mediaType: string;
  /** Name of the backend. */
  place: string;
  object: string;
}

/** Stores small content under its hash. The caller holds the content's lock, and the content does not exist yet. */
export async function putInDatabase(client: PoolClient, upload: Upload, rules: BlobRules): Promise<void> {
  const mediaType = await inspect(chunksOf(client, upload), upload, rules);
  await insert(client, upload, { mediaType, place: "database", object: null });
  await client.query(
    `INSERT INTO parley.blob_chunks (sha256, n, data)
     SELECT $1, n, data FROM parley.blob_upload_chunks WHERE upload_id = $2`,
    [upload.sha256, upload.id],
  );
}

/** Throws INVALID_INPUT when the upload is not the announced content: the sender of a stored hash must have the content. */
export async function requireWhole(client: PoolClient, upload: Upload, rules: BlobRules): Promise<void> {
  await inspect(chunksOf(client, upload), upload, rules);
}

/**
 * Stores what `writeOutside` has written. The caller holds the content's lock, and the content does not exist yet. Throws UNAVAILABLE
 * when the removal of the object may have begun.
 */
export async function putInBackend(client: PoolClient, upload: Upload, written: OutsideContent): Promise<void> {
  await adopt(client, written);
  await insert(client, upload, written);
}

async function insert(
  client: PoolClient,
  { sha256, bytes }: Upload,
  { mediaType, place, object }: { mediaType: string; place: string; object: string | null },
): Promise<void> {
  // An older store may have left a row that marks the content for removal.
  await release(client, sha256);
  await client.query(
    "INSERT INTO parley.blobs (sha256, bytes, media_type, place, object) VALUES ($1, $2, $3, $4, $5)",
    [sha256, bytes, mediaType, place, object],
  );
}

/** The backend for an upload; null: the database. */
export function backendFor({ bytes }: Pick<Upload, "bytes">, { backends }: BlobRules): BlobBackend | null {
  return bytes > databaseBytes ? backends.preferred : null;
}

/**
 * Writes content outside of the database and outside of a transaction, because it may take longer than a transaction may. Each write uses
 * a new name, which is registered first, so that a crash leaves no object that is never removed.
 */
export async function writeOutside(
  database: Database,
  backend: BlobBackend,
  upload: Upload,
  rules: BlobRules,
): Promise<OutsideContent> {
  const { sha256, bytes } = upload;
  const mediaType = await inspect(chunksOf(database.pool, upload), upload, rules);
  const written = { mediaType, place: backend.name, object: `${sha256}.${newId()}` };
  await register(database, written);
  await backend.write({ object: written.object, sha256, bytes, chunks: () => chunksOf(database.pool, upload) });
  return written;
}

/** Detects the media type. Throws INVALID_INPUT when the hash differs or the type is not accepted. */
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
    throw new WireError("INVALID_INPUT", "the uploaded content does not have the announced hash");
  }
  const mediaType = signature ?? (text.isText ? "text/plain" : "application/octet-stream");
  if (!allowsType(types, mediaType)) {
    throw new WireError("INVALID_INPUT", `files of type ${mediaType} are not accepted (attachments.types)`);
  }
  return mediaType;
}

async function* chunksOf(client: Queryable, { id, bytes }: Upload): AsyncGenerator<Buffer> {
  const count = Math.ceil(bytes / store.blobChunkBytes);
  for (let n = 0; n < count; n++) {
    const { rows } = await client.query<{ data: Buffer }>(
      "SELECT data FROM parley.blob_upload_chunks WHERE upload_id = $1 AND n = $2",
      [id, n],
    );
    if (rows[0] === undefined) throw new WireError("INVALID_INPUT", `chunk ${n} of ${count} is missing`);
    yield rows[0].data;
  }
}
