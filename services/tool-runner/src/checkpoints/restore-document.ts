// Puts a document of the store back, or foresees that; the store does it, this words what came of it.
import { WireError, type KeptDocument, type RewoundFile, type store } from "@parley/contracts";
import type { Rows } from "./rows.ts";

/** `fence`: of the rewind; null: nothing is changed, only foreseen. */
export async function putDocumentBack(
  { path }: KeptDocument,
  rows: Pick<Rows, "putDocumentBack">,
  rewind: store.RewindPermit,
  fence: number | null,
): Promise<RewoundFile> {
  try {
    const outcome = await rows.putDocumentBack(rewind, path, fence);
    if (outcome === "unchanged") return { path, outcome: "skipped", reason: "it is as it was" };
    return { path, outcome, reason: null };
  } catch (error) {
    // A refusal is this document's; a store that is away, or another owner of the workspace, ends the rewind.
    if (WireError.is(error, "INVALID_INPUT", "NOT_FOUND", "CONFLICT", "TOO_LARGE"))
      return { path, outcome: "failed", reason: error.message };
    throw error;
  }
}
