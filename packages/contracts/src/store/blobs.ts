// Content addressed by hash: uploaded in chunks, stored once, fetched in chunks.
import { z } from "zod";
import { Sha256Schema } from "../attachments.ts";
import { Empty, storeRequest } from "./shared.ts";

/** Content bytes of one chunk: its base64 form stays below the bus's payload limit. */
export const blobChunkBytes = 256 * 1024;
/** Base64 length of one chunk. */
const maxChunkCharacters = Math.ceil(blobChunkBytes / 3) * 4;

const BlobSchema = z.object({
  sha256: z.string(),
  bytes: z.number().int().nonnegative(),
  /** Detected from the content's first bytes. */
  mediaType: z.string(),
});
export type Blob = z.infer<typeof BlobSchema>;

export const blobBegin = storeRequest({
  subject: "store.blob.begin",
  clients: ["agent-core", "channel-gateway"],
  doc: "Announce content. `blob`: the store already has it, and keeps it for another `attachments.keep_hours`. Otherwise the caller sends it in chunks under `uploadId` within one hour. TOO_LARGE above `attachments.max_bytes`; INVALID_INPUT for empty content.",
  input: z.object({ opId: z.uuid(), sha256: Sha256Schema, bytes: z.number().int().nonnegative() }),
  output: z.discriminatedUnion("status", [
    z.object({ status: z.literal("kept"), blob: BlobSchema }),
    z.object({ status: z.literal("wanted"), uploadId: z.uuid() }),
  ]),
});

export const blobPut = storeRequest({
  subject: "store.blob.put",
  clients: ["agent-core", "channel-gateway", "tool-runner"],
  doc: "Upload one chunk of content that `store.blob.begin` or `store.call.blob.begin` announced, 256 KiB except for the last one, in any order. Repeating a chunk has no effect. NOT_FOUND when the upload has ended.",
  input: z.object({
    uploadId: z.uuid(),
    /** From 0. */
    n: z.number().int().nonnegative(),
    data: z.base64().max(maxChunkCharacters),
  }),
  output: Empty,
});

export const blobCommit = storeRequest({
  subject: "store.blob.commit",
  clients: ["agent-core", "channel-gateway", "tool-runner"],
  doc: "Complete an upload. INVALID_INPUT, without storing anything, when chunks are missing, the hash differs, or `attachments.types` does not allow the type. NOT_FOUND when the upload has ended. The content is kept for `attachments.keep_hours` and as long as a session refers to it.",
  input: z.object({ uploadId: z.uuid() }),
  output: z.object({ blob: BlobSchema }),
});

export const blobHead = storeRequest({
  subject: "store.blob.head",
  clients: ["agent-core", "channel-gateway"],
  doc: "Get the metadata of these contents; missing ones are left out. With `sessionId`, only contents that this session, one of its parent agents or one of its sub-agents refers to.",
  input: z.object({ sha256: z.array(Sha256Schema).max(100), sessionId: z.uuid().optional() }),
  output: z.object({ blobs: z.array(BlobSchema) }),
});

export const blobGet = storeRequest({
  subject: "store.blob.get",
  clients: ["agent-core", "channel-gateway"],
  doc: "Get one chunk of a content, numbered from 0. NOT_FOUND when the store does not have the content or it has no such chunk.",
  input: z.object({ sha256: Sha256Schema, n: z.number().int().nonnegative() }),
  output: z.object({
    data: z.base64(),
    /** Size of the whole content. */
    bytes: z.number().int(),
  }),
});
