// What is worth counting and saying: one helper for each thing that happens. It never throws and never logs content.
import { Counter, Gauge, type Chassis, type Logger } from "@parley/chassis";

export interface GatewayEvents {
  inbound(channel: string, result: "stored" | "duplicate" | "ignored" | "command" | "refused", reason?: string): void;
  /** A platform gave another text the id of one that is kept. */
  idReused(channel: string, inboxId: string): void;
  outbound(channel: string, outcome: "sent" | "retry" | "unknown" | "dropped"): void;
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
    help: "Inbound messages by what became of them",
    labelNames: ["channel", "result"],
    registers,
  });
  const outbound = new Counter({
    name: "parley_outbound_total",
    help: "Attempts to send by their outcome",
    labelNames: ["channel", "outcome"],
    registers,
  });
  const hooks = new Counter({
    name: "parley_hooks_total",
    help: "Webhook deliveries by what became of them",
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
    help: "Watchers that were cut off because they read too slowly",
    labelNames: ["kind"],
    registers,
  });
  return {
    inbound(channel, result, reason) {
      inbound.inc({ channel, result });
      if (reason !== undefined) log.debug({ channel, result, reason }, "inbound");
    },
    idReused(channel, inboxId) {
      log.warn({ channel, inboxId }, "another text came under the id of a message that is kept; the first one counts");
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
      log.info({ lease: name, fence }, "connection taken");
    },
    leaseLost(name, reason) {
      leases.dec();
      log.warn({ lease: name, reason }, "connection lost");
    },
    leaseReleased(name) {
      leases.dec();
      log.info({ lease: name }, "connection released");
    },
    clients(kind, change) {
      clients.inc({ kind }, change);
    },
    slowClient(kind) {
      slow.inc({ kind });
    },
  };
}
