// Starts and stops the whole cluster on one machine: servers, migration and four supervised services.

import { join } from "node:path";

import { ConfigError, type ExplainedSettings, explainSettings } from "@parley/chassis/settings";
import { type Role, type ServiceName, services } from "@parley/contracts";
import { abortable } from "@parley/kit";

import { findConfig } from "./config-file.ts";
import { ensureConsole } from "./console-build.ts";
import { describeModel } from "./configured-model.ts";
import {
  type ClusterContext,
  type Environment,
  migrationEnvironment,
  serviceEnvironment,
  settingsVariables,
} from "./environment.ts";
import { knownSystemError, LocalError } from "./errors.ts";
import { lockHome, type Home, ensureToken, openHome, type ReplicaState, sha256 } from "./home.ts";
import { nameOf } from "./processes.ts";
import { withSecrets } from "./secrets.ts";
import { findBubblewrap } from "./servers/locate.ts";
import { freePort, gatewayPorts } from "./servers/ports.ts";
import type { LogSink } from "./servers/process.ts";
import { startBackingServices, type BackingServices, type GivenServers } from "./supervisor/backing-services.ts";
import { migrate, repositoryPrograms, type Programs } from "./supervisor/program.ts";
import type { ReplicaHandle, ReplicaOptions } from "./supervisor/replica.ts";
import { killOrphanedReplicas, RunningCluster } from "./supervisor/running-cluster.ts";
import { chosenWorkspace, workspaceFolders } from "./workspace.ts";

export interface LocalClusterOptions {
  /** The data folder; created if missing. One cluster at a time uses it. */
  readonly home: string;
  /** The port of the first gateway; 0 (the default): any free port. */
  readonly httpPort?: number;
  /** How many processes of each service; 1 by default. */
  readonly replicas?: Readonly<Partial<Record<ServiceName, number>>>;
  /** The caller's environment (ANTHROPIC_API_KEY, PARLEY_MODEL, DATABASE_URL, …); default: none. Only listed variables are passed on. */
  readonly environment?: Environment;
  /** Further variables for all services, one service or one replica (`store-1`); they override everything else, the narrowest last. */
  readonly env?: Readonly<
    Partial<Record<ServiceName | "all" | `${ServiceName}-${number}`, Readonly<Record<string, string>>>>
  >;
  /** Servers that run already; the cluster does not stop them. */
  readonly servers?: GivenServers;
  /** The folder for unpacked packages; `<home>/servers` by default. */
  readonly serversDir?: string;
  /** Receives progress, one short line each. */
  readonly print?: LogSink;
  /** Receives warnings that must always be shown, for example a full disk; `print` by default. */
  readonly warn?: LogSink;
  /** Receives every line that the services print. */
  readonly onServiceLine?: (replica: string, line: string) => void;
  /** Aborts the start and stops what has been running. */
  readonly signal?: AbortSignal;
  /** The scripts to run; the repository's services by default. */
  readonly programs?: Programs;
  /** Starts a replica in another way, for tests. Undefined: as a supervised process. */
  readonly startReplica?: (options: ReplicaOptions) => ReplicaHandle | undefined;
}

export interface Cluster extends AsyncDisposable {
  readonly home: string;
  /** The first gateway, for example `http://127.0.0.1:8787`. */
  readonly httpUrl: string;
  readonly httpUrls: readonly string[];
  readonly token: string;
  readonly tokenFile: string;
  /** A description of the model in use. */
  readonly model: string;
  /** NATS with the operator's credentials. */
  readonly natsUrl: string;
  readonly natsUrls: Readonly<Record<Role, string>>;
  /** PostgreSQL as the role that owns the schema. */
  readonly databaseUrl: string;
  /** Redis with the rights of agent-core. */
  readonly redisUrl: string;
  /** Redis with all rights; the same as `redisUrl` for an external server. */
  readonly redisAdminUrl: string;
  /** The servers that the cluster started and supervises: `restart()` kills one and waits for its successor. */
  readonly servers: Pick<BackingServices, "postgres" | "redis" | "nats">;
  replicas(): ReplicaState[];
  /** Sends a signal to a replica (numbers begin at 1). After SIGKILL it resolves when the process has ended. */
  kill(service: ServiceName, replica: number, signal: NodeJS.Signals): Promise<void>;
  /** Resolves when the replica is ready: now, or after its next start. */
  whenReady(service: ServiceName, replica: number): Promise<void>;
  /** Drains a replica (SIGTERM) and resolves when its successor is ready. */
  restart(service: ServiceName, replica: number): Promise<void>;
  /** Starts further replicas and resolves when they are ready, or drains those with the highest numbers and resolves when they have ended. */
  scale(service: ServiceName, count: number): Promise<void>;
  /** Drains and stops everything in this order: gateways, agent-core, tool-runner, store, servers. */
  stop(): Promise<void>;
  /** Kills everything without a drain. */
  stopNow(): Promise<void>;
}

/** Starts the cluster and resolves when every replica is ready. */
export async function startLocalCluster(options: LocalClusterOptions): Promise<Cluster> {
  const { print = () => {} } = options;
  let home: Home;
  let running: RunningCluster;
  try {
    home = openHome(options.home);
    running = new RunningCluster(home, lockHome(home), print, options.warn ?? print);
  } catch (error) {
    throw knownSystemError(error, options.home) ?? error;
  }
  try {
    return await bringUp(options, home, running);
  } catch (error) {
    await running.stopNow();
    throw knownSystemError(error, home.path) ?? error;
  }
}

async function bringUp(options: LocalClusterOptions, home: Home, running: RunningCluster): Promise<Cluster> {
  const { print = () => {}, programs = repositoryPrograms, serversDir = home.servers, servers: given = {} } = options;
  const signal = options.signal ?? new AbortController().signal;
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  const environment = withSecrets(home.path, { PATH, HOME, NODE_COMPILE_CACHE, ...options.environment });
  const namespace = environment.PARLEY_NAMESPACE || "parley";
  const configPath = findConfig(home.path, environment);
  const settings = readSettings(configPath, environment);
  const folders = workspaceFolders(home.path, chosenWorkspace(home.path, configPath, environment));

  await killOrphanedReplicas(home);
  const token = ensureToken(home, environment.PARLEY_TOKEN);
  const ports = await gatewayPorts(options.httpPort ?? 0, options.replicas?.["channel-gateway"] ?? 1);
  const searchingBwrap = findBubblewrap(serversDir, print);
  const buildingConsole = ensureConsole(print);
  const backing = await startBackingServices({
    home,
    serversDir,
    namespace,
    environment,
    given,
    print,
    writeFailures: running.writeFailures,
  });
  running.backing = backing;
  signal.throwIfAborted();

  if (programs.migrate !== null) {
    print("database: migrating");
    const migrateEnv = migrationEnvironment(backing.ownerUrl, environment);
    await migrate(programs.migrate, migrateEnv, join(home.logs, "migrate.log"), signal);
  }

  const context: ClusterContext = {
    namespace,
    natsUrls: backing.natsUrls,
    storeUrl: backing.storeUrl,
    redisUrl: backing.redisUrl,
    tokenSha256: sha256(token),
    configPath,
    folders,
    secretsDir: join(home.path, "secrets"),
    bwrapPath: await searchingBwrap,
  };
  const stateFields = {
    supervisor: nameOf(process.pid) ?? { pid: process.pid, started: "" },
    startedAt: new Date().toISOString(),
    httpUrl: `http://127.0.0.1:${ports[0]}`,
    httpUrls: ports.map((port) => `http://127.0.0.1:${port}`),
    tokenFile: join(home.path, "token"),
    logs: home.logs,
    namespace,
    natsUrl: backing.natsUrls.operator,
    databaseUrl: backing.ownerUrl,
    redisUrl: backing.redisUrl,
    model: describeModel(environment, settings),
    settings: settingsVariables(environment),
    workspace: folders.workspace,
  };
  running.stateFields = stateFields;
  await buildingConsole;
  signal.throwIfAborted();
  print(`services: ${services.join(", ")}`);
  const start = (service: ServiceName, number: number, httpPort: number | null): void => {
    const name = `${service}-${number}` as const;
    const env = serviceEnvironment(service, { name, httpPort }, context, environment);
    const replica = {
      service,
      number,
      entry: programs.services[service],
      env: { ...env, ...options.env?.all, ...options.env?.[service], ...options.env?.[name] },
      cwd: home.path,
      logPath: join(home.logs, `${name}.log`),
      httpPort,
      onLine: options.onServiceLine,
    };
    running.add(replica, options.startReplica);
  };
  for (const service of services) {
    for (let number = 1; number <= (options.replicas?.[service] ?? 1); number += 1)
      start(service, number, service === "channel-gateway" ? (ports[number - 1] ?? null) : null);
  }
  await abortable(Promise.all(running.replicas.map((replica) => replica.firstReady)), signal);

  const stop = (): Promise<void> => running.stop();
  return {
    ...stateFields,
    home: home.path,
    token,
    natsUrls: backing.natsUrls,
    redisAdminUrl: backing.redisAdminUrl,
    servers: backing,
    replicas: () => running.replicas.map((replica) => replica.state()),
    kill: async (service, number, what) => {
      await running.replica(service, number).kill(what);
    },
    whenReady: async (service, number) => running.replica(service, number).whenReady(),
    restart: async (service, number) => running.replica(service, number).restart(),
    async scale(service, count) {
      const current = running.replicas.filter((replica) => replica.service === service).length;
      for (let number = current + 1; number <= count; number += 1)
        start(service, number, service === "channel-gateway" ? await freePort() : null);
      const all = running.replicas.filter((replica) => replica.service === service);
      await Promise.all(all.map((replica) => (replica.number > count ? running.remove(replica) : replica.whenReady())));
    },
    stop,
    stopNow: () => running.stopNow(),
    [Symbol.asyncDispose]: stop,
  };
}

/** Called before anything starts, so that a wrong setting is reported once and not by four services. */
function readSettings(configPath: string | null, environment: Environment): ExplainedSettings {
  try {
    return explainSettings(configPath ?? undefined, environment);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new LocalError("bad_settings", `Invalid settings:\n${error.message}`, {
      fix: "Correct the settings; `npx parley config print --origin` then shows the source of each value.",
    });
  }
}
