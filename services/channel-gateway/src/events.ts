// Metrics and logs of the gateway: one function per event. They never throw and never log message content.
import { Counter, Gauge, type Chassis, type Logger } from "@parley/chassis";

export interface GatewayEvents {
  inbound(
    channel: string,
    result: "stored" | "duplicate" | "ignored" | "command" | "action" | "refused",
    reason?: string,
  ): void;
  /** A platform reused the id of a stored message for a different text. */
  idReused(channel: string, inboxId: string): void;
  outbound(channel: string, outcome: "sent" | "part" | "retry" | "unknown" | "doubtful" | "dropped"): void;
  hook(id: string, result: "stored" | "duplicate" | "refused", reason?: string): void;
  leaseTaken(name: string, fence: number): void;
  leaseLost(name: string, reason: string): void;
  leaseReleased(name: string): void;
  clients(kind: "ws" | "sse", change: 1 | -1): void;
  slowClient(kind: "ws" | "sse"): void;
}

export function createEvents({ metrics, log }: Pick<Chassis, "metrics"> & { log: Logger }): GatewayEvents {
  const registers = [metrics.registry];
  const inbound = new Counter({
    name: "parley_inbound_total",
    help: "Inbound messages by result",
    labelNames: ["channel", "result"],
    registers,
  });
  const outbound = new Counter({
    name: "parley_outbound_total",
    help: "Send attempts by outcome",
    labelNames: ["channel", "outcome"],
    registers,
  });
  const hooks = new Counter({
    name: "parley_hooks_total",
    help: "Webhook deliveries by result",
    labelNames: ["hook", "result"],
    registers,
  });
  const leases = new Gauge({ name: "parley_leases_held", help: "Connections this replica owns", registers });
  const clients = new Gauge({
    name: "parley_live_clients",
    help: "Connected watchers",
    labelNames: ["kind"],
    registers,
  });
  const slow = new Counter({
    name: "parley_slow_clients_total",
    help: "Watchers disconnected because they read too slowly",
    labelNames: ["kind"],
    registers,
  });
  return {
    inbound(channel, result, reason) {
      inbound.inc({ channel, result });
      if (reason !== undefined) log.debug({ channel, result, reason }, "inbound");
    },
    idReused(channel, inboxId) {
      log.warn({ channel, inboxId }, "message id reused with a different text: the first text is kept");
    },
    outbound(channel, outcome) {
      outbound.inc({ channel, outcome });
    },
    hook(hook, result, reason) {
      hooks.inc({ hook, result });
      if (reason !== undefined) log.warn({ hook, reason }, "webhook refused");
    },
    leaseTaken(name, fence) {
      leases.inc();
      log.info({ lease: name, fence }, "lease acquired");
    },
    leaseLost(name, reason) {
      leases.dec();
      log.warn({ lease: name, reason }, "lease lost");
    },
    leaseReleased(name) {
      leases.dec();
      log.info({ lease: name }, "lease released");
    },
    clients(kind, change) {
      clients.inc({ kind }, change);
    },
    slowClient(kind) {
      slow.inc({ kind });
    },
  };
}
