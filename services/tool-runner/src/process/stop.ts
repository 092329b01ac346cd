// A person ends what a session has running in the background here (`/stop all`). It is all that the gateway may do to a command.
import type { Bus, Served } from "@parley/bus";
import { toolStop } from "@parley/contracts";
import type { Ledger } from "./ledger.ts";
import type { Processes } from "./processes.ts";

/** How long a killed command has to be gone before the answer. */
const goneMs = 1_000;

export function serveStop(bus: Bus, replica: string, processes: Processes, ledger: Pick<Ledger, "told">): Served {
  const stop = async (sessionId: string) => {
    const running = processes.ofSession(sessionId).filter(({ end }) => end === undefined);
    const patience = AbortSignal.timeout(goneMs);
    const ids = running.map(({ id }) => id);
    const gone = running.map(async (entry) => {
      entry.started.signal("SIGKILL");
      await processes.end(entry, goneMs, patience);
    });
    // Side by side: a store that is away keeps no command alive, and an end that somebody waits for is not announced at once.
    await Promise.all([ledger.told("own", ids), ...gone]);
    return {};
  };
  return bus.serve(toolStop, ({ sessionId }) => stop(sessionId), { replica });
}
