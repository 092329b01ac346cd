// Serves the memory subjects and maintains their index.
import type { Chassis } from "@parley/chassis";
import { store, type MemorySettings } from "@parley/contracts";
import type { Database } from "../../db/database.ts";
import * as memory from "./memory.ts";
import * as consolidation from "./consolidation.ts";
import * as notes from "./notes.ts";
import * as vectors from "./vectors.ts";
import { refreshIndex, forgetSessions, requireLanguage } from "../../memory/refresh-index.ts";

export interface ServedMemory {
  served: { close(): void }[];
  /** Call after a document changed: memory documents are indexed in the background. Searches do not depend on it; they update the index. */
  changed(): void;
  /** Resolves when indexing has finished. */
  idle(): Promise<void>;
}

/** Throws when PostgreSQL does not support the configured language. */
export async function serveMemory(
  { bus, log }: Chassis,
  database: Database,
  settings: MemorySettings,
): Promise<ServedMemory> {
  await requireLanguage(database, settings.language);
  let work: Promise<void> | undefined;
  let again = false;
  const index = (first: () => Promise<void>) => {
    again = true;
    work ??= (async () => {
      try {
        await first();
        while (again) {
          again = false;
          await refreshIndex(database, settings);
        }
      } catch (error) {
        log.warn({ err: error }, "memory not indexed: retried by the next search");
      } finally {
        work = undefined;
      }
    })();
  };
  index(() => (settings.sessions ? Promise.resolve() : forgetSessions(database)));
  return {
    served: [
      bus.serve(store.memorySearch, (input) => memory.search(database, settings, input)),
      bus.serve(store.memoryGet, (input) => memory.get(database, settings, input)),
      bus.serve(store.memoryAppend, (input) => notes.append(database, bus, settings, input)),
      bus.serve(store.memoryForget, (input) => notes.forget(database, bus, settings, input)),
      bus.serve(store.memoryUnembedded, (input) => vectors.unembedded(database, settings, input)),
      bus.serve(store.memoryEmbed, (input) => vectors.embed(database, input)),
      bus.serve(store.memoryMaterial, (input) => consolidation.material(database, settings, input)),
      bus.serve(store.memoryConsolidate, (input) => consolidation.consolidate(database, bus, settings, input)),
    ],
    changed: () => index(() => Promise.resolve()),
    idle: async () => {
      await work;
    },
  };
}
