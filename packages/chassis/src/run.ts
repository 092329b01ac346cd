// Life cycle of a service process: read the configuration, open the probes, start, report, wait for a reason to end, drain, exit.

import type { ServiceName } from "@parley/contracts";

import { type BaseConfig, type Environment, readBaseConfig } from "./config.ts";
import { ConfigError, configExitCode } from "./errors.ts";
import { armFaults } from "./fault.ts";
import { type HealthListener, listenHealth } from "./health.ts";
import { createLiveness } from "./liveness.ts";
import { createMetrics } from "./metrics.ts";
import { withSecretsFolder } from "./secrets-folder.ts";
import type { RunningService, StartContext } from "./service.ts";
import { Startup } from "./startup.ts";
import { collectStartupMemory } from "./startup-memory.ts";
import { startTracing } from "./tracing.ts";

/** Time limit for sending the last spans; an unavailable collector must not delay the exit. */
const flushMs = 2_000;
/** Reserved from the drain time, so that flushing never exceeds it. */
const flushMarginMs = 250;

/**
 * Runs a service until a signal, the loss of its supervisor or its own end. Exit codes: 0 after a drain, 78 for a wrong
 * configuration (reported on standard error), 1 for everything else.
 */
export async function runService<C extends BaseConfig>(
  service: ServiceName,
  readConfig: (env: Environment, base: BaseConfig) => C,
  start: (config: C, context: StartContext) => Promise<RunningService>,
): Promise<never> {
  // A failed log write (full disk, no reader) must not end the process; the line is lost.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
  const stop = stopRequests();
  let config: C;
  try {
    const env = withSecretsFolder(process.env);
    config = readConfig(env, readBaseConfig(env, service));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${service}: ${error.message}\n`);
    process.exit(configExitCode);
  }
  armFaults(config.faults);

  const state = { started: false, draining: false };
  // A service that has not started has nothing to drain.
  void stop.then(() => (state.started ? undefined : process.exit(0)));
  const tracing = await startTracing(config);
  const metrics = createMetrics(service);
  const startup = new Startup((wait) => process.send?.({ type: "waiting", ...wait }));
  let running: RunningService | undefined;
  let health: HealthListener;
  try {
    health = await listenHealth({
      host: config.healthHost,
      port: config.healthPort,
      metrics: metrics.registry,
      startup: () => startup.reason,
      unready: () => (state.draining ? "draining" : running === undefined ? "starting" : running.unready()),
      live: createLiveness(async () => running?.live?.()),
    });
    running = await start(config, { startup, metrics });
    startup.finish();
    state.started = true;
  } catch (error) {
    process.stderr.write(`${service}: cannot start: ${explain(error)}\n`);
    process.exit(error instanceof ConfigError ? configExitCode : 1);
  }
  process.send?.({ type: "ready", service, healthPort: health.port, httpPort: running.httpPort });
  running.log.info({ healthPort: health.port, httpPort: running.httpPort }, "ready");
  collectStartupMemory();

  const reason = await Promise.race([stop, running.ended]);
  if (reason instanceof Error) {
    running.log.fatal({ err: reason }, "service ended unexpectedly");
    process.exit(1);
  }
  state.draining = true;
  const drainedBy = performance.now() + config.drainMs;
  running.log.info("draining");
  setTimeout(() => {
    running.log.error({ limitMs: config.drainMs }, "drain timed out");
    process.exit(1);
  }, config.drainMs).unref();
  await running.close();
  await health.close();
  await tracing.flush(Math.min(flushMs, drainedBy - performance.now() - flushMarginMs));
  process.exit(0);
}

/** Resolves at the first SIGTERM, SIGINT or when the supervisor is gone; the second signal ends the process immediately. */
function stopRequests(): Promise<undefined> {
  return new Promise((resolve) => {
    let stopRequested = false;
    const ask = () => {
      if (stopRequested) process.exit(1);
      stopRequested = true;
      resolve(undefined);
    };
    process.on("SIGTERM", ask);
    process.on("SIGINT", ask);
    process.on("disconnect", () => {
      if (!stopRequested) ask();
    });
  });
}

/** Configuration and system errors are reported by message; all others with their stack. */
function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  if (error instanceof Error && "syscall" in error) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
