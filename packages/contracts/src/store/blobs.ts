// Content by its hash: sent to the store in chunks, kept once, fetched in chunks.
import { z } from "zod";
import { Sha256Schema } from "../attachments.ts";
import { request } from "../contract.ts";
import { Empty } from "./shared.ts";

/** Content bytes of one chunk: as base64 it stays below the bus's payload cap. */
export const blobChunkBytes = 256 * 1024;
/** What the bus's payload cap leaves for one chunk. */
const maxChunkCharacters = Math.ceil(blobChunkBytes / 3) * 4;

const BlobSchema = z.object({
  sha256: z.string(),
  bytes: z.number().int().nonnegative(),
  /** Read from the content's first bytes. */
  mediaType: z.string(),
});
export type Blob = z.infer<typeof BlobSchema>;

export const blobBegin = request({
  subject: "store.blob.begin",
  server: "store",
  clients: ["agent-core", "channel-gateway"],
  doc: "Announce content. `blob`: the store has it already, and keeps it for another `attachments.keep_hours`. Else it is sent in chunks under `uploadId` within an hour. TOO_LARGE above `attachments.max_bytes`; INVALID_INPUT for nothing at all.",
  input: z.object({ opId: z.uuid(), sha256: Sha256Schema, bytes: z.number().int().nonnegative() }),
  output: z.discriminatedUnion("status", [
    z.object({ status: z.literal("kept"), blob: BlobSchema }),
    z.object({ status: z.literal("wanted"), uploadId: z.uuid() }),
  ]),
});

export const blobPut = request({
  subject: "store.blob.put",
  server: "store",
  clients: ["agent-core", "channel-gateway"],
  doc: "One chunk of announced content, 256 KiB but for the last, in any order. The same chunk again changes nothing. NOT_FOUND when the upload is over.",
  input: z.object({
    uploadId: z.uuid(),
    /** From 0. */
    n: z.number().int().nonnegative(),
    data: z.base64().max(maxChunkCharacters),
  }),
  output: Empty,
});

export const blobCommit = request({
  subject: "store.blob.commit",
  server: "store",
  clients: ["agent-core", "channel-gateway"],
  doc: "Keep what was sent. INVALID_INPUT when chunks are missing, when the hash is another one, and for a type that `attachments.types` does not let in: nothing is kept then. NOT_FOUND when the upload is over. Kept for `attachments.keep_hours`, and as long as a session refers to it.",
  input: z.object({ uploadId: z.uuid() }),
  output: z.object({ blob: BlobSchema }),
});

export const blobHead = request({
  subject: "store.blob.head",
  server: "store",
  clients: ["agent-core", "channel-gateway"],
  doc: "What is known of these contents; those that are not there are left out. With `sessionId`, only those that this session refers to, one it is a sub-agent's of, or one of its sub-agents.",
  input: z.object({ sha256: z.array(Sha256Schema).max(100), sessionId: z.uuid().optional() }),
  output: z.object({ blobs: z.array(BlobSchema) }),
});

export const blobGet = request({
  subject: "store.blob.get",
  server: "store",
  clients: ["agent-core", "channel-gateway"],
  doc: "One chunk of a content, from 0. NOT_FOUND when the store does not have it, or it has no such chunk.",
  input: z.object({ sha256: Sha256Schema, n: z.number().int().nonnegative() }),
  output: z.object({
    data: z.base64(),
    /** Of the whole content. */
    bytes: z.number().int(),
  }),
});
