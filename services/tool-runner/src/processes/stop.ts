// Ends a session's background processes here when a person sends `/stop all`. The gateway has no other control over commands.
import type { Bus, Served } from "@parley/bus";
import { toolStop } from "@parley/contracts";
import type { ProcessStoreSync } from "./store-sync.ts";
import type { Processes } from "./processes.ts";

/** How long to wait for killed commands before responding. */
const goneMs = 1_000;

export function serveStop(
  bus: Bus,
  replica: string,
  processes: Processes,
  ledger: Pick<ProcessStoreSync, "told">,
): Served {
  const stop = async (sessionId: string) => {
    const running = processes.ofSession(sessionId).filter(({ end }) => end === undefined);
    const patience = AbortSignal.timeout(goneMs);
    const ids = running.map(({ id }) => id);
    const gone = running.map(async (entry) => {
      entry.started.signal("SIGKILL");
      await processes.end(entry, goneMs, patience);
    });
    // In parallel: an unavailable store keeps no command alive, and the exits are not announced while a call waits for them.
    await Promise.all([ledger.told("own", ids), ...gone]);
    return {};
  };
  return bus.serve(toolStop, ({ sessionId }) => stop(sessionId), { replica });
}
