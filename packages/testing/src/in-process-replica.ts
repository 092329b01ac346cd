// A replica of a service inside the test's own process: it starts in a fraction of the time of a process. It can be neither killed nor
// restarted, and fault points do not fire in it.
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { readBaseConfig, type BaseConfig, type RunningService } from "@parley/chassis";
import type { ReplicaHandle, ReplicaOptions, ReplicaState } from "@parley/local";

interface ServiceModule {
  start(config: BaseConfig): Promise<RunningService>;
}

interface ConfigModule {
  readConfig(env: Record<string, string>, base: BaseConfig): BaseConfig;
}

/** The lease of agent-core; the other services have none. */
const lease = {
  ttlMs: 60_000,
  renewMs: 2_000,
  giveUpMs: 50_000,
  pingMs: 100,
  absentMs: 100,
  pollMs: 1_000,
  silentMs: 1_500,
};

/** It cannot be killed immediately, so it may close also when the cluster stops without a drain. */
const hurriedCloseMs = 10_000;

/** Starts the service of `options.entry` from its `config.ts` and `service.ts`. Its log is written only with PARLEY_TEST_LOGS. */
export function startInProcess(
  options: Pick<ReplicaOptions, "service" | "number" | "entry" | "env" | "httpPort" | "onChange">,
): ReplicaHandle {
  const { service, number } = options;
  const state: ReplicaState = {
    service,
    name: `${service}-${number}`,
    number,
    process: null,
    ready: false,
    startedAt: new Date().toISOString(),
    restarts: 0,
    httpPort: options.httpPort,
    healthPort: null,
  };
  let running: RunningService | undefined;
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= running?.close());
  /** Why the service ended by itself. */
  let failure: Error | undefined;
  /** Nothing restarts it. */
  const watchEnd = async (service: RunningService) => {
    failure = await service.ended;
    if (failure === undefined) return;
    state.ready = false;
    options.onChange();
    process.stderr.write(`${state.name} ended: ${failure.message}\n`);
    await close();
  };
  const start = async () => {
    const level = process.env["PARLEY_TEST_LOGS"] === undefined ? { PARLEY_LOG_LEVEL: "silent" } : {};
    const env = { ...options.env, ...level };
    const folder = dirname(options.entry);
    const load = (file: string): Promise<unknown> => import(pathToFileURL(join(folder, file)).href);
    const [settings, program] = (await Promise.all([load("config.ts"), load("service.ts")])) as [
      ConfigModule,
      ServiceModule,
    ];
    // Nothing here kills a leader, and a busy test process must not end its leadership.
    const config = { ...settings.readConfig(env, readBaseConfig(env, service)), lease };
    running = await program.start(config);
    watchEnd(running).catch(() => undefined);
    state.ready = true;
    state.httpPort = running.httpPort ?? state.httpPort;
    options.onChange();
  };
  const firstReady = start();
  const refuse = async (): Promise<never> => {
    throw new Error(`${state.name} runs in the test's process; name ${service} in \`processes\` of the test cluster.`);
  };
  return {
    service,
    number,
    firstReady,
    state: () => ({ ...state }),
    whenReady: () => firstReady,
    kill: refuse,
    restart: refuse,
    async stop(drainMs) {
      await firstReady.catch(() => undefined);
      const closed = Promise.resolve(close()).then(() => true);
      // A process that does not end is killed; here the test fails.
      const limitMs = drainMs === 0 ? hurriedCloseMs : drainMs;
      if (!(await Promise.race([closed, delay(limitMs, false, { ref: false })]))) {
        throw new Error(`${state.name} did not stop within ${limitMs} ms`);
      }
      if (failure !== undefined) throw new Error(`${state.name} ended by itself`, { cause: failure });
    },
  };
}
