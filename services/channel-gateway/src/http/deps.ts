// The dependencies of the routes.
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import type { ParleySettings } from "@parley/contracts";
import type { Disabled } from "../account-states.ts";
import type { HostedAdapter } from "../accounts.ts";
import type { HttpConfig } from "../config.ts";
import type { GatewayEvents } from "../events.ts";
import type { Inbound } from "../inbound.ts";
import type { Live } from "../live.ts";
import type { SessionStreams } from "../session-stream.ts";
import type { Sessions } from "../sessions.ts";
import type { Waiters } from "./waiters.ts";

export interface HttpDeps {
  bus: Bus;
  log: Logger;
  http: HttpConfig;
  settings: ParleySettings;
  channelSecrets: ReadonlyMap<string, string>;
  inbound: Inbound;
  live: Live;
  sessions: Sessions;
  streams: SessionStreams;
  /** Requests that wait for a turn: a drain gives them a grace period. */
  waiters: Waiters;
  /** Event streams: a drain ends them immediately. */
  watchers: Waiters;
  events: GatewayEvents;
  /** The configured accounts, each with the host of its adapter. */
  adapters: readonly HostedAdapter[];
  /** Configured accounts that cannot be used. */
  disabled: readonly Disabled[];
}
