// What a service gets from the chassis before its own work begins, and what it must offer in return.
import { connectBus, type Bus } from "@parley/bus";
import { healthReports, type ReplicaReport } from "@parley/contracts";
import type { BaseConfig } from "./config.ts";
import { createLogger, type Logger } from "./logger.ts";
import { createMetrics, type ServiceMetrics } from "./metrics.ts";
import { spanFields } from "./tracing.ts";
import { version } from "./version.ts";

/** The common dependencies of a service's parts. */
export interface Chassis {
  bus: Bus;
  log: Logger;
  metrics: ServiceMetrics;
}

/** What `start` returns. */
export interface RunningService {
  /** The service's own HTTP port, where it has one. */
  readonly httpPort?: number;
  /** Can it take work now? */
  ready(): boolean;
  /**
   * Does a small piece of the service's real work. Rejects when the process must be ended and started again; one that does not settle
   * within three seconds counts as such. Left out: it is enough that the event loop turns.
   */
  live?(): Promise<void>;
  metrics: ServiceMetrics;
  log: Logger;
  /** Settles when the service can no longer do its work: with the reason, or undefined after `close`. */
  readonly ended: Promise<Error | undefined>;
  /** Stops taking work, finishes what runs, lets go of everything. */
  close(): Promise<void>;
}

/** Opens the bus, the log and the metrics of a service. Waits while the bus is away. */
export async function openChassis(
  config: BaseConfig,
  options: { secrets?: readonly string[]; log?: Logger } = {},
): Promise<Chassis> {
  const log =
    options.log ??
    createLogger({
      service: config.service,
      replica: config.replica,
      level: config.logLevel,
      ...(config.tracing === null ? {} : { fields: spanFields }),
      ...(options.secrets === undefined ? {} : { secrets: options.secrets }),
    });
  const metrics = createMetrics(config.service);
  const bus = await connectBus({
    url: config.natsUrl,
    namespace: config.namespace,
    role: config.service,
    name: config.replica,
    log,
    onBadPayload: (subject) => metrics.badPayloads.inc({ subject }),
    dropHints: config.faults.dropHints,
    traceStore: config.tracing?.traceStore ?? false,
  });
  return { bus, log, metrics };
}

const startedAt = performance.now();

/** Answers `health.<service>`: how this replica stands. */
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
    ...state(),
  }));
}
