// The dependencies that the chassis provides to a service, and the interface that a service must implement.

import { type Bus, connectBus } from "@parley/bus";
import { healthReports, type ReplicaReport } from "@parley/contracts";

import type { BaseConfig } from "./config.ts";
import { exportCertificateExpiry } from "./certificates.ts";
import { createLogger, type Logger } from "./logger.ts";
import { createMetrics, type ServiceMetrics } from "./metrics.ts";
import { Startup } from "./startup.ts";
import { spanFields } from "./tracing.ts";
import { version } from "./version.ts";

/** The common dependencies of a service's parts. */
export interface Chassis {
  bus: Bus;
  log: Logger;
  metrics: ServiceMetrics;
  startup: Startup;
}

/** Objects that `runService` opens before a service starts; omitted in tests that start a service directly. */
export interface StartContext {
  startup: Startup;
  metrics: ServiceMetrics;
}

/** What `start` returns. */
export interface RunningService {
  /** The service's own HTTP port, where it has one. */
  readonly httpPort?: number;
  /** Why it cannot take work now, in one sentence; null: it can. */
  unready(): string | null;
  /**
   * Does a small piece of the service's real work. Rejects when the process must be restarted; not settling within three seconds counts as
   * rejection. Omitted: a running event loop suffices.
   */
  live?(): Promise<void>;
  metrics: ServiceMetrics;
  log: Logger;
  /** Settles when the service can no longer do its work: with the reason, or undefined after `close`. */
  readonly ended: Promise<Error | undefined>;
  /** Stops taking work, finishes running work, releases all resources. */
  close(): Promise<void>;
}

/** The log of a service, without `secrets`. `onLine` receives each line as it is written. */
export function openLog(config: BaseConfig, secrets: readonly string[] = [], onLine?: (line: string) => void): Logger {
  return createLogger({
    service: config.service,
    replica: config.replica,
    level: config.logLevel,
    ...(config.tracing === null ? {} : { fields: spanFields }),
    secrets,
    ...(onLine === undefined ? {} : { onLine }),
  });
}

/** Opens the bus, the log and the metrics of a service. Waits while the bus is unavailable and reports why. */
export async function openChassis(
  config: BaseConfig,
  options: {
    secrets?: readonly string[];
    onLine?: (line: string) => void;
    log?: Logger;
    context?: StartContext | undefined;
  } = {},
): Promise<Chassis> {
  const log = options.log ?? openLog(config, options.secrets, options.onLine);
  const { startup, metrics } = options.context ?? { startup: new Startup(), metrics: createMetrics(config.service) };
  startup.logTo(log);
  // Before the bus is there: its absence is what a replica waits for most often.
  metrics.collect("parley_start_waiting", () => metrics.set("parley_start_waiting", startup.isWaiting ? 1 : 0));
  exportCertificateExpiry(metrics, "nats", config.natsTls);
  const bus = await connectBus({
    url: config.natsUrl,
    tls: config.natsTls,
    seed: config.natsSeed,
    namespace: config.namespace,
    role: config.service,
    name: config.replica,
    log,
    onBadPayload: (subject) => metrics.count("parley_bad_payloads_total", { subject }),
    onRequest: (outcome, seconds) => {
      metrics.count("parley_bus_requests_total", { outcome });
      metrics.observe("parley_bus_request_seconds", seconds);
    },
    onLost: (kind) => metrics.count("parley_bus_lost_total", { kind }),
    onReconnect: () => metrics.count("parley_bus_reconnects_total"),
    onWaiting: (reason) => startup.waiting("the bus", reason),
    dropHints: config.faults.dropHints,
    traceStore: config.tracing?.traceStore ?? false,
  });
  startup.arrived("the bus");
  metrics.collect("parley_bus_connected", () => metrics.set("parley_bus_connected", bus.connected ? 1 : 0));
  return { bus, log, metrics, startup };
}

const startedAt = performance.now();

/** Serves `health.<service>`: the status of this replica. */
export function serveHealthReport(
  bus: Bus,
  config: BaseConfig,
  state: () => Pick<ReplicaReport, "role" | "epoch" | "ready" | "details">,
): void {
  bus.serve(healthReports[config.service], async () => ({
    service: config.service,
    replica: config.replica,
    pid: process.pid,
    uptimeSeconds: Math.round((performance.now() - startedAt) / 100) / 10,
    rssMib: Math.round(process.memoryUsage.rss() / 1024 / 102.4) / 10,
    version,
    ...withBus(state(), bus),
  }));
}

function withBus<S extends Pick<ReplicaReport, "details">>(state: S, bus: Bus): S {
  return { ...state, details: { busEncrypted: bus.encrypted, ...state.details } };
}
