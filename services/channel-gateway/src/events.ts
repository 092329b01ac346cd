// Metrics and logs of the gateway: one function per event. They never throw and never log message content.
import type { Chassis, LabelsOf, Logger } from "@parley/chassis";
import type { InboundMessage, store } from "@parley/contracts";
import { LRUCache } from "lru-cache";

export interface GatewayEvents {
  /** A platform delivered something; `reason`: why it was refused. */
  inbound(
    channel: string,
    result: "stored" | "duplicate" | "command" | "action" | "change" | "refused",
    reason?: string,
  ): void;
  /** A message was ignored. Logged once in a while for each reason and group, or person outside of groups. */
  ignored(message: IgnoredMessage, reason: string): void;
  /** A message was refused because its sender is over a limit. The first refusal in a window is logged. */
  overLimit(message: Pick<InboundMessage, "channel" | "account" | "contact">, refusal: store.OverLimit): void;
  /** A platform reused the id of a stored message for a different text. */
  idReused(channel: string, inboxId: string): void;
  /** An account of this channel is opened: its sends are counted from 0. */
  opened(channel: string): void;
  /**
   * An attempt to send one message of a text to a platform. `part`: sent, and more follow; `unknown`: the last one may have arrived;
   * `doubtful`: one before the last may have arrived, and the rest follows.
   */
  outbound(channel: string, outcome: "sent" | "part" | "retry" | "unknown" | "doubtful" | "dropped"): void;
  /** A webhook was called; `reason`: why it was refused. */
  hook(id: string, result: "stored" | "duplicate" | "refused", reason?: string): void;
  leaseAcquired(name: string, fence: number): void;
  leaseLost(name: string, reason: string): void;
  leaseReleased(name: string): void;
  /** A stream client connected or disconnected. */
  clients(kind: "ws" | "sse", change: 1 | -1): void;
  /** A stream client was disconnected or lost live events because it read too slowly. */
  slowClient(kind: "ws" | "sse"): void;
  /** A response was sent; `durationMs` is null for event streams. */
  request(route: string, status: number, durationMs: number | null): void;
  /** A request was refused with this code of `HttpError`. */
  refused(code: string): void;
}

/** `by`: the id of the sender. */
export interface IgnoredMessage {
  channel: string;
  account: string;
  group?: string | undefined;
  by: string;
}

/** Ignored messages with the same reason and place are logged once in this time: a busy group must not fill the log of its account. */
const ignoredEveryMs = 10 * 60_000;
const maxIgnored = 1_000;

/** Codes of requests that are refused before their route. */
const refusals: ReadonlyMap<string, LabelsOf<"parley_http_refused_total">["reason"]> = new Map([
  ["host_not_allowed", "host"],
  ["origin_not_allowed", "origin"],
  ["unauthorized", "token"],
  ["rate_limited", "rate"],
  ["scope_missing", "scope"],
]);

type StatusClass = LabelsOf<"parley_http_requests_total">["status"];

export function createEvents({ metrics, log }: Pick<Chassis, "metrics"> & { log: Logger }): GatewayEvents {
  let leases = 0;
  const clients = { ws: 0, sse: 0 };
  const lately = new LRUCache<string, true>({ max: maxIgnored, ttl: ignoredEveryMs });
  const leaseChanged = (by: 1 | -1) => metrics.set("parley_leases_held", (leases += by));
  // Present from the start: autoscaling takes a missing sum for a gateway that is not scraped.
  for (const kind of ["ws", "sse"] as const) metrics.set("parley_live_clients", { kind }, clients[kind]);
  return {
    inbound(channel, result, reason) {
      metrics.count("parley_inbound_total", { channel, result });
      if (reason !== undefined) log.debug({ channel, outcome: result, reason }, "inbound");
    },
    ignored({ channel, account, group, by }, reason) {
      metrics.count("parley_inbound_total", { channel, result: "ignored" });
      const key = JSON.stringify([channel, account, reason, group ?? by]);
      if (lately.has(key)) return;
      lately.set(key, true);
      log.info({ channel, account, group, by, reason }, "message ignored");
    },
    overLimit({ channel, account, contact }, { limit, first, retryAfterMs }) {
      metrics.count("parley_inbound_total", { channel, result: "refused" });
      metrics.count("parley_people_over_limit_total", { limit });
      if (first)
        log.warn(
          { channel, account, by: contact.id, reason: limit, waitMs: retryAfterMs },
          "message refused: the sender is over a limit (parley people limits)",
        );
    },
    idReused(channel, inboxId) {
      log.warn({ channel, inboxId }, "message id reused with a different text: the first text is kept");
    },
    opened(channel) {
      metrics.expect("parley_outbound_total", { channel });
    },
    outbound(channel, outcome) {
      metrics.count("parley_outbound_total", { channel, outcome });
    },
    hook(hook, result, reason) {
      metrics.count("parley_hooks_total", { hook, result });
      if (reason !== undefined) log.warn({ hook, reason }, "webhook refused");
    },
    leaseAcquired(name, fence) {
      leaseChanged(1);
      log.info({ lease: name, fence }, "lease acquired");
    },
    leaseLost(name, reason) {
      leaseChanged(-1);
      log.warn({ lease: name, reason }, "lease lost");
    },
    leaseReleased(name) {
      leaseChanged(-1);
      log.info({ lease: name }, "lease released");
    },
    /** A stream client connected or disconnected. */
    clients(kind, change) {
      metrics.set("parley_live_clients", { kind }, (clients[kind] += change));
    },
    /** A stream client was disconnected or lost live events because it read too slowly. */
    slowClient(kind) {
      metrics.count("parley_slow_clients_total", { kind });
    },
    request(route, status, durationMs) {
      const statusClass = `${Math.floor(status / 100)}xx` as StatusClass;
      metrics.count("parley_http_requests_total", { route, status: statusClass });
      if (durationMs !== null) metrics.observe("parley_http_request_seconds", durationMs / 1_000);
    },
    refused(code) {
      const reason = refusals.get(code);
      if (reason !== undefined) metrics.count("parley_http_refused_total", { reason });
    },
  };
}
