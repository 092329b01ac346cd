// Restores a document in the store, or previews the restore; the store does the work, this formats the result.
import { WireError, type CapturedDocument, type RewoundFile, type store } from "@parley/contracts";
import type { CheckpointClient } from "./checkpoint-client.ts";

/** `fence`: the rewind's fence; null: only a preview, nothing is changed. */
export async function putDocumentBack(
  { path }: CapturedDocument,
  rows: Pick<CheckpointClient, "putDocumentBack">,
  rewind: store.RewindPermit,
  fence: number | null,
): Promise<RewoundFile> {
  try {
    const outcome = await rows.putDocumentBack(rewind, path, fence);
    if (outcome === "unchanged") return { path, outcome: "skipped", reason: "it is unchanged" };
    return { path, outcome, reason: null };
  } catch (error) {
    // A rejection concerns only this document. An unavailable store, or a lost fence, ends the whole rewind.
    if (WireError.is(error, "INVALID_INPUT", "NOT_FOUND", "CONFLICT", "TOO_LARGE"))
      return { path, outcome: "failed", reason: error.message };
    throw error;
  }
}
