// The dependencies of the routes.
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import type { ParleySettings } from "@parley/contracts";
import type { Accounts } from "../accounts/accounts.ts";
import type { AccountDirectory } from "../accounts/directory.ts";
import type { HttpConfig } from "../config.ts";
import type { GatewayEvents } from "../events.ts";
import type { InboundHandler } from "../ingress/inbound.ts";
import type { EventHub } from "../live/event-hub.ts";
import type { SessionStreams } from "../live/session-stream.ts";
import type { SessionDirectory } from "../live/session-directory.ts";
import type { OpenRequests } from "./open-requests.ts";

export interface HttpDeps {
  bus: Bus;
  log: Logger;
  http: HttpConfig;
  settings: ParleySettings;
  channelSecrets: ReadonlyMap<string, string>;
  inbound: InboundHandler;
  live: EventHub;
  sessions: SessionDirectory;
  streams: SessionStreams;
  /** Requests that wait for a turn: a drain gives them a grace period. */
  waiters: OpenRequests;
  /** Event streams: a drain ends them immediately. */
  watchers: OpenRequests;
  events: GatewayEvents;
  /** The accounts that have an adapter on this replica. */
  accounts: Accounts;
  directory: AccountDirectory;
}
