// Content addressed by hash: announced, uploaded in chunks, stored once, fetched in chunks.
import type { FairSemaphore } from "@parley/kit";
import { store, WireError, type InputOf, type OutputOf } from "@parley/contracts";
import {
  putInDatabase,
  putInBackend,
  lockContent,
  backendFor,
  requireWhole,
  writeOutside,
  type BlobRules,
  type OutsideContent,
  type Upload,
} from "../../blobs/put.ts";
import { referFromSession, referredBy, referredByFamily } from "../../blobs/references.ts";
import { abandon } from "../../blobs/orphans.ts";
import { withClient, type Database, type PoolClient } from "../../db/database.ts";
import { requireOpenCall } from "../../grants.ts";
import { runTransaction } from "../../db/operation.ts";
import { withGrant, type Handlers, type StoreContext } from "../handler.ts";

interface OpenUpload extends Upload {
  done: boolean;
  /** Session of the uploading call; null: not uploaded by a call. */
  sessionId: string | null;
}

interface BlobRow {
  sha256: string;
  bytes: number;
  mediaType: string;
}

/** As long as a request waits for a connection. */
const permitWithinMs = 5_000;

const columns = `sha256, bytes, media_type AS "mediaType"`;

export const blobHandlers = {
  blobBegin({ database, blobRules: rules }, input) {
    return announce(database, rules, input, { sessionId: null, mayHave: async () => true });
  },

  /** For a tool call, or for a prompt (no grant). Content that the call may not access must be uploaded again, so that its hash reveals nothing. */
  async callBlobBegin({ database, grants, blobRules: rules }, input) {
    if (input.grant === undefined)
      return announce(database, rules, input, { sessionId: null, mayHave: async () => false });
    const grant = await grants.check(input.grant);
    await withClient(database, (client) => requireOpenCall(client, grant));
    return announce(database, rules, input, {
      sessionId: grant.sessionId,
      mayHave: async (client, sha256) => (await referredBy(client, grant, [sha256])).has(sha256),
    });
  },

  blobPut: ({ database, transferPermits }, input) =>
    withTransferPermit(transferPermits, () => putChunk(database, input)),
  blobCommit: ({ database, blobRules, transferPermits }, input) => commit(database, blobRules, transferPermits, input),
  blobGet: readChunk,

  async blobHead({ database }, { sha256, sessionId }) {
    const { rows } = await database.query<BlobRow>(
      `SELECT ${columns} FROM parley.blobs WHERE sha256 = ANY($1) AND doomed_at IS NULL AND ($2::uuid IS NULL OR ${referredByFamily("$2")})`,
      [sha256, sessionId ?? null],
    );
    return { blobs: rows };
  },

  /** For a tool call: content of its own agent tree; other content counts as missing. */
  callBlobGet: withGrant(async (context, grant, { sha256, n }) => {
    const known = await withClient(context.database, async (client) => {
      await requireOpenCall(client, grant);
      return referredBy(client, grant, [sha256]);
    });
    if (!known.has(sha256)) throw new WireError("NOT_FOUND", `there is no content ${sha256} with a chunk ${n}`);
    return readChunk(context, { sha256, n });
  }),
} satisfies Partial<Handlers>;

/** The result of work on the database with content, which has a permit meanwhile. Not for work on other backends, which may be slow. */
async function withTransferPermit<T>(permits: FairSemaphore, work: () => Promise<T>): Promise<T> {
  const release = await permits.acquire(AbortSignal.timeout(permitWithinMs)).catch(() => {
    throw new WireError("UNAVAILABLE", "the store is busy with other content");
  });
  try {
    return await work();
  } finally {
    release();
  }
}

/** A chunk of stored content. Throws NOT_FOUND. */
async function readChunk(
  { database, blobRules: { backends }, transferPermits }: StoreContext,
  { sha256, n }: { sha256: string; n: number },
) {
  const missing = new WireError("NOT_FOUND", `there is no content ${sha256} with a chunk ${n}`);
  const find = () =>
    database.query<{ bytes: number; place: string; object: string; data: Buffer | null }>({
      name: "blob-get",
      text: `SELECT bytes, place, coalesce(object, blobs.sha256) AS object, data FROM parley.blobs LEFT JOIN parley.blob_chunks ON blob_chunks.sha256 = blobs.sha256 AND n = $2
             WHERE blobs.sha256 = $1 AND doomed_at IS NULL`,
      values: [sha256, n],
    });
  const { rows } = await withTransferPermit(transferPermits, find);
  const [kept] = rows;
  const offset = n * store.blobChunkBytes;
  if (kept === undefined || offset >= kept.bytes) throw missing;
  const length = Math.min(store.blobChunkBytes, kept.bytes - offset);
  const chunk =
    kept.place === "database" ? kept.data : await backends.named(kept.place).read(kept.object, offset, length);
  if (chunk === null) throw missing;
  if (chunk.length !== length) throw new WireError("INTERNAL", `the stored content ${sha256} is damaged`);
  return { data: Buffer.from(chunk).toString("base64"), bytes: kept.bytes };
}

interface Uploader {
  /** The session that gets a reference to the content with the commit. */
  sessionId: string | null;
  /** Whether existing content needs no upload. */
  mayHave: (client: PoolClient, sha256: string) => Promise<boolean>;
}

async function announce(
  database: Database,
  rules: BlobRules,
  { opId, sha256, bytes }: InputOf<typeof store.blobBegin>,
  { sessionId, mayHave }: Uploader,
): Promise<OutputOf<typeof store.blobBegin>> {
  if (bytes === 0) throw new WireError("INVALID_INPUT", "an empty file cannot be an attachment");
  if (bytes > rules.maxBytes) {
    throw new WireError(
      "TOO_LARGE",
      `the file has ${bytes} bytes; the limit is ${rules.maxBytes} (attachments.max_bytes)`,
    );
  }
  return withClient(database, async (client) => {
    const kept = (await mayHave(client, sha256)) ? await touch(client, sha256) : undefined;
    if (kept !== undefined) return { status: "kept", blob: kept };
    await client.query(
      "INSERT INTO parley.blob_uploads (id, sha256, bytes, session_id) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING",
      [opId, sha256, bytes, sessionId],
    );
    return { status: "wanted", uploadId: opId };
  });
}

async function putChunk(
  database: Database,
  { uploadId, n, data }: InputOf<typeof store.blobPut>,
): Promise<OutputOf<typeof store.blobPut>> {
  const chunk = Buffer.from(data, "base64");
  return withClient(database, async (client) => {
    const upload = await uploadOf(client, uploadId);
    const left = upload.bytes - n * store.blobChunkBytes;
    if (left <= 0 || chunk.length !== Math.min(left, store.blobChunkBytes)) {
      throw new WireError(
        "INVALID_INPUT",
        `chunk ${n} has ${chunk.length} bytes, which does not fit the announced size`,
      );
    }
    if (!upload.done) {
      await client.query({
        name: "blob-put",
        text: "INSERT INTO parley.blob_upload_chunks (upload_id, n, data) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        values: [uploadId, n, chunk],
      });
    }
    return {};
  });
}

export async function commit(
  database: Database,
  rules: BlobRules,
  permits: FairSemaphore,
  { uploadId }: InputOf<typeof store.blobCommit>,
): Promise<OutputOf<typeof store.blobCommit>> {
  const written = await writeFirst(database, rules, uploadId);
  const complete = async (client: PoolClient) => {
    const upload = await uploadOf(client, uploadId, "FOR UPDATE");
    await lockContent(client, upload.sha256);
    const known = await touch(client, upload.sha256);
    if (known !== undefined) {
      if (written !== null) await abandon(client, written);
      else if (!upload.done) await requireWhole(client, upload, rules);
      await finish(client, upload);
      return { blob: known };
    }
    // This upload was committed before, and its content has been deleted since.
    if (upload.done) throw new WireError("NOT_FOUND", `the upload ${uploadId} has ended`);
    if (written === null) await putInDatabase(client, upload, rules);
    else await putInBackend(client, upload, written);
    await finish(client, upload);
    const kept = await touch(client, upload.sha256);
    if (kept === undefined) throw new Error("content is missing in the transaction that stored it");
    return { blob: kept };
  };
  return withTransferPermit(permits, () => runTransaction(database, complete));
}

/** Null: the content belongs in the database, or it is already stored. */
async function writeFirst(database: Database, rules: BlobRules, uploadId: string): Promise<OutsideContent | null> {
  const currentUpload = () => withClient(database, (client) => uploadOf(client, uploadId));
  const upload = await currentUpload();
  const backend = backendFor(upload, rules);
  if (backend === null || upload.done) return null;
  try {
    return await writeOutside(database, backend, upload, rules);
  } catch (error) {
    // Another replica served a retry of this commit and has deleted the chunks.
    if ((await currentUpload()).done) return null;
    throw error;
  }
}

/** Marks the upload as done, so that a repeated commit has the same reply. */
async function finish(client: PoolClient, { id, sha256, sessionId }: OpenUpload): Promise<void> {
  await client.query("UPDATE parley.blob_uploads SET done = true WHERE id = $1", [id]);
  await client.query("DELETE FROM parley.blob_upload_chunks WHERE upload_id = $1", [id]);
  if (sessionId !== null) await referFromSession(client, sessionId, sha256);
}

/** The existing content, with an extended retention. */
async function touch(client: PoolClient, sha256: string): Promise<BlobRow | undefined> {
  const { rows } = await client.query<BlobRow>(
    `UPDATE parley.blobs SET touched_at = now() WHERE sha256 = $1 AND doomed_at IS NULL RETURNING ${columns}`,
    [sha256],
  );
  return rows[0];
}

async function uploadOf(client: PoolClient, uploadId: string, lock: "" | "FOR UPDATE" = ""): Promise<OpenUpload> {
  const { rows } = await client.query<OpenUpload>({
    name: `blob-upload${lock}`,
    text: `SELECT id, sha256, bytes, done, session_id AS "sessionId" FROM parley.blob_uploads WHERE id = $1 ${lock}`,
    values: [uploadId],
  });
  if (rows[0] === undefined) throw new WireError("NOT_FOUND", `the upload ${uploadId} has ended`);
  return rows[0];
}
