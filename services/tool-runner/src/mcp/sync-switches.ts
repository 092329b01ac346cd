// Applies the switches that people set for MCP servers to this replica. The store has the current state; it publishes a hint on each
// change, and polling covers a lost hint.
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { mcpSwitched, store } from "@parley/contracts";
import { rerunWhileRequested } from "@parley/kit";
import type { McpServers } from "./servers.ts";

/** Poll interval: the delay after a lost hint. */
const pollMs = 2_000;
/** Request timeout: a store that hangs must not delay the next poll for long. */
const askMs = 5_000;

export interface FollowDeps {
  bus: Bus;
  log: Logger;
  servers: McpServers;
}

/** Starts servers only after the store has returned the switches; until then their state is `starting`. */
export function followSwitches({ bus, log, servers }: FollowDeps): { close(): void } {
  const over = new AbortController();
  let unavailable = false;
  // The response may not contain a change that arrives during the request: then the request is repeated.
  const follow = rerunWhileRequested(async () => {
    try {
      const { switches } = await bus.request(store.mcpSwitches, {}, { timeoutMs: askMs });
      if (over.signal.aborted) return;
      unavailable = false;
      servers.follow(switches);
    } catch (error) {
      if (!unavailable && !over.signal.aborted) {
        log.warn({ err: error }, "MCP switches not read: the servers keep their state");
      }
      unavailable = true;
    }
  }, over.signal);
  const subscription = bus.subscribe(mcpSwitched, {}, () => void follow());
  const timer = setInterval(() => void follow(), pollMs);
  void follow();
  return {
    close: () => {
      over.abort();
      clearInterval(timer);
      subscription.close();
    },
  };
}
