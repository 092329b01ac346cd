// Transfers content that is too large for a message: uploaded to and fetched from the store in chunks. The caller holds the whole content in
// memory; the store's size limit bounds it.
import { randomUUID } from "node:crypto";
import { store, WireError, type store as Store } from "@parley/contracts";
import { omitUndefined } from "@parley/kit";
import type { Bus } from "./bus.ts";
import { contentHash } from "./content-hash.ts";

/** Concurrent chunks. Few, because other requests of the same services wait behind them. */
const parallel = 2;
/** Long, because the store reads the whole upload again before storing it. */
const commitMs = 30_000;

/** In a tool-runner: the grant of the call that the content is for; null: no call. Omitted: in other services. */
type ForCall = string | null;

/** Stores content in the store. Throws the store's WireError: TOO_LARGE, or INVALID_INPUT for content that it does not accept. */
export async function storeBlob(bus: Bus, content: Uint8Array, call?: ForCall): Promise<Store.Blob> {
  const sha256 = await contentHash(content);
  const announced = { opId: randomUUID(), sha256, bytes: content.length };
  const begun =
    call === undefined
      ? await bus.request(store.blobBegin, announced)
      : await bus.request(store.callBlobBegin, omitUndefined({ ...announced, grant: call ?? undefined }));
  if (begun.status === "kept") return begun.blob;
  const { uploadId } = begun;
  await inParallel(Math.ceil(content.length / store.blobChunkBytes), async (n) => {
    const chunk = content.subarray(n * store.blobChunkBytes, (n + 1) * store.blobChunkBytes);
    await bus.request(store.blobPut, { uploadId, n, data: Buffer.from(chunk).toString("base64") });
  });
  const { blob } = await bus.request(store.blobCommit, { uploadId }, { timeoutMs: commitMs, attemptMs: commitMs / 2 });
  return blob;
}

/** Fetches a whole content. `grant`: of the requesting tool call. Throws NOT_FOUND when the store does not have it, INTERNAL when the stored content is damaged. */
export async function fetchBlob(bus: Bus, sha256: string, grant?: string): Promise<Buffer> {
  const chunk = (n: number) =>
    grant === undefined
      ? bus.request(store.blobGet, { sha256, n })
      : bus.request(store.callBlobGet, { sha256, n, grant });
  const first = await chunk(0);
  const chunks = [Buffer.from(first.data, "base64")];
  await inParallel(Math.ceil(first.bytes / store.blobChunkBytes) - 1, async (index) => {
    const { data } = await chunk(index + 1);
    chunks[index + 1] = Buffer.from(data, "base64");
  });
  const content = Buffer.concat(chunks);
  if ((await contentHash(content)) !== sha256) {
    throw new WireError("INTERNAL", `the stored content ${sha256} is damaged`);
  }
  return content;
}

async function inParallel(count: number, work: (n: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(parallel, count) }, worker));
}
