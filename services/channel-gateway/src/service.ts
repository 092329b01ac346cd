// Puts the gateway together and takes it apart again. Each part does its own work; here they are given to each other.
import { openChassis, serveHealthReport, type RunningService } from "@parley/chassis";
import type { ChannelAdapter } from "./channel.ts";
import type { GatewayConfig } from "./config.ts";
import { createEvents } from "./events.ts";
import { listenHttp } from "./http/server.ts";
import { unavailable } from "./http/errors.ts";
import { Waiters } from "./http/waiters.ts";
import { Inbound } from "./inbound.ts";
import { Live } from "./live.ts";
import { SessionStreams } from "./session-stream.ts";
import { Sessions } from "./sessions.ts";

/** What a test puts in place of the real thing. */
export interface GatewayOverrides {
  /** In place of those that the settings name. */
  adapters?: readonly ChannelAdapter[];
}

/** Starts a replica; it is ready when this resolves. */
export async function start(config: GatewayConfig, overrides: GatewayOverrides = {}): Promise<RunningService> {
  const { bus, log, metrics } = await openChassis(config, { secrets: [...config.channelSecrets.values()] });
  const events = createEvents({ metrics, log });
  const live = new Live(bus);
  const sessions = new Sessions(bus);
  const inbound = new Inbound({ bus, live, sessions, events, policy: config.settings.session.policy });
  const streams = new SessionStreams({ bus, live });
  const waiters = new Waiters();
  const state = { draining: false };
  const ready = () => bus.connected && !state.draining;

  const listener = await listenHttp({
    bus,
    log,
    http: config.http,
    settings: config.settings,
    channelSecrets: config.channelSecrets,
    inbound,
    live,
    sessions,
    streams,
    waiters,
    events,
    adapters: (overrides.adapters ?? []).map((adapter) => ({ adapter, host: undefined as never })),
  }).catch(async (error: unknown) => {
    live.close();
    await bus.drain();
    throw error;
  });
  serveHealthReport(bus, config, () => ({
    role: "active",
    epoch: null,
    ready: ready(),
    details: { httpPort: listener.port, watchedSessions: live.watched, waitingRequests: waiters.count },
  }));

  return {
    httpPort: listener.port,
    ready,
    metrics,
    log,
    ended: bus.closed,
    async close() {
      state.draining = true;
      const closed = listener.close();
      waiters.end(
        unavailable("this replica is going down; what was said is kept, its answer can be asked for elsewhere"),
      );
      await closed;
      live.close();
      await bus.drain();
    },
  };
}
