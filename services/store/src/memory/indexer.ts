// Keeps the memory index up to date in the background, one run at a time.
import type { Logger } from "@parley/chassis";
import type { MemorySettings } from "@parley/contracts";
import { rerunWhileRequested } from "@parley/kit";
import type { Database } from "../db/database.ts";
import { forgetSessions, refreshIndex } from "./refresh-index.ts";

/** Starts to index. Returns a function that requests another run and resolves at its end; call it after a document changed. */
export function startIndexing(
  database: Database,
  settings: MemorySettings,
  log: Logger,
  stopping: AbortSignal,
): () => Promise<void> {
  let forget = !settings.sessions;
  const refresh = rerunWhileRequested(async () => {
    try {
      if (forget) await forgetSessions(database);
      forget = false;
      await refreshIndex(database, settings);
    } catch (error) {
      log.warn({ err: error }, "memory not indexed: retried by the next search");
    }
  }, stopping);
  void refresh();
  return refresh;
}
