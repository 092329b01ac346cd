// What the routes are given.
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
  /** Requests that wait for a turn: a drain gives them a moment. */
  waiters: Waiters;
  /** Streams of events: a drain ends them at once. */
  watchers: Waiters;
  events: GatewayEvents;
  /** The accounts of the settings, and what their adapters are offered. */
  adapters: readonly HostedAdapter[];
  /** Accounts of the settings that cannot be used. */
  disabled: readonly Disabled[];
}
