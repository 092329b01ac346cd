// Keeps the MCP servers of this replica as people have switched them: the store knows what holds; its hint is heard at once, and whoever
// missed it looks by itself.
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { mcpSwitched, store } from "@parley/contracts";
import type { McpServers } from "./servers.ts";

/** How late a replica that missed the hint may be. */
const lookMs = 2_000;
/** The store is asked again at the next look; one that hangs must not hold it back for long. */
const askMs = 5_000;

export interface FollowDeps {
  bus: Bus;
  log: Logger;
  servers: McpServers;
}

/** Servers are started only when it is known which of them are on: until the store answers they are being started. */
export function followSwitches({ bus, log, servers }: FollowDeps): { close(): void } {
  const over = new AbortController();
  let asking: Promise<void> | undefined;
  let again = false;
  let away = false;

  /** A change that comes while the store is asked need not be in its answer: then it is asked once more. */
  const look = () => {
    again = asking !== undefined;
    asking ??= toTheEnd().finally(() => (asking = undefined));
  };
  const toTheEnd = async () => {
    do {
      again = false;
      await follow();
    } while (again && !over.signal.aborted);
  };
  const follow = async () => {
    try {
      const { switches } = await bus.request(store.mcpSwitches, {}, { timeoutMs: askMs });
      if (over.signal.aborted) return;
      away = false;
      servers.follow(switches);
    } catch (error) {
      if (!away && !over.signal.aborted) {
        log.warn({ err: error }, "what is switched of MCP servers is not known: they stay as they are");
      }
      away = true;
    }
  };
  const heard = bus.subscribe(mcpSwitched, {}, look);
  const timer = setInterval(() => (asking === undefined ? look() : undefined), lookMs);
  look();
  return {
    close: () => {
      over.abort();
      clearInterval(timer);
      heard.close();
    },
  };
}
