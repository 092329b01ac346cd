// A NATS server with a bus that requests and a bus that serves, and a request that both know.
import type { Bus } from "@parley/bus";
import { newId } from "@parley/contracts";
import type { NatsServer } from "@parley/local";
import { openTestBus, startTestNats, type Cleanup } from "@parley/testing";

export interface BusPair {
  nats: NatsServer;
  /** Of agent-core. */
  core: Bus;
  /** Of the store. */
  served: Bus;
}

/** The input of `store.leadership.acquire`. */
export const acquire = { opId: newId(), holder: "h" };

export async function startBusPair(cleanup: Cleanup): Promise<BusPair> {
  const nats = await startTestNats(cleanup);
  const [core, served] = await Promise.all([
    openTestBus(nats, "agent-core", cleanup),
    openTestBus(nats, "store", cleanup),
  ]);
  return { nats, core, served };
}
