// Puts a document of the store back: the version before becomes a new one, with the authors that its lines had, so nothing is lost by it.
import { WireError, type KeptDocument, type RewoundFile } from "@parley/contracts";
import type { Rows } from "./rows.ts";

export interface DocumentGround {
  rows: Pick<Rows, "document" | "putDocumentBack">;
  /** Keeps the version that stands there now; null: nothing is changed, only foreseen. */
  keep: ((now: KeptDocument) => Promise<void>) | null;
}

export async function putDocumentBack({ path, version }: KeptDocument, ground: DocumentGround): Promise<RewoundFile> {
  const { rows, keep } = ground;
  const left = (outcome: "skipped" | "failed", reason: string): RewoundFile => ({ path, outcome, reason });
  try {
    const now = await rows.document(path);
    const wanted = version === 0 ? null : await rows.document(path, version);
    if ((now?.content ?? null) === (wanted?.content ?? null)) return left("skipped", "it is as it was");
    if (keep !== null) {
      await keep({ path, version: now?.version ?? 0 });
      if (!(await rows.putDocumentBack(path, wanted?.version ?? null, now?.version ?? 0))) {
        return left("failed", "somebody else changed it at the same time");
      }
    }
    return { path, outcome: wanted === null ? "removed" : "restored", reason: null };
  } catch (error) {
    // A refusal is this document's; a store that is away, or another owner of the workspace, ends the rewind.
    if (WireError.is(error, "INVALID_INPUT", "NOT_FOUND", "CONFLICT", "TOO_LARGE"))
      return left("failed", error.message);
    throw error;
  }
}
