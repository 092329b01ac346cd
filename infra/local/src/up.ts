// The whole cluster on one machine: servers, migration, four services under supervision, and the way down again.

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";

import { ConfigError, explainSettings, type ExplainedSettings } from "@parley/chassis";
import { services, type Role, type ServiceName } from "@parley/contracts";

import {
  migrationEnvironment,
  serviceEnvironment,
  settingsVariables,
  type ClusterFacts,
  type Environment,
} from "./environment.ts";
import { knownSystemError, LocalError } from "./errors.ts";
import { holdHome, keepToken, openHome, sha256, type Home, type ReplicaState } from "./home.ts";
import { describeModel } from "./model.ts";
import { nameOf } from "./processes.ts";
import { findBubblewrap } from "./servers/bubblewrap.ts";
import type { LogSink } from "./servers/process.ts";
import { startBacking, type Backing, type GivenServers } from "./supervisor/backing.ts";
import { gatewayPorts } from "./supervisor/ports.ts";
import { migrate, REPOSITORY_PROGRAMS, type Programs } from "./supervisor/program.ts";
import { endLeftOvers, Started } from "./supervisor/running-cluster.ts";

export interface UpOptions {
  /** The data folder; made when missing. One cluster at a time. */
  readonly home: string;
  /** The port of the first gateway; 0 (the default) takes any free one. */
  readonly httpPort?: number;
  /** How many processes of each service; 1 by default. */
  readonly replicas?: Readonly<Partial<Record<ServiceName, number>>>;
  /** The settings of whoever starts it (ANTHROPIC_API_KEY, PARLEY_MODEL, DATABASE_URL, …); nothing by default. Only named ones pass. */
  readonly environment?: Environment;
  /** Further variables for one service, or all of them; over everything else. */
  readonly env?: Readonly<Partial<Record<ServiceName | "all", Readonly<Record<string, string>>>>>;
  /** Servers that run already; they are left running. */
  readonly servers?: GivenServers;
  /** Where unpacked packages are kept; `<home>/servers` by default. */
  readonly serversDir?: string;
  /** Hears what is being done, one short line each. */
  readonly say?: LogSink;
  /** Gets what a person has to know at any time, as that the disk is full; `say` by default. */
  readonly warn?: LogSink;
  /** Hears every line the services print. */
  readonly onServiceLine?: (replica: string, line: string) => void;
  /** Ends the start; what was started by then is stopped. */
  readonly signal?: AbortSignal;
  /** The scripts to run; those of this repository by default. */
  readonly programs?: Programs;
}

export interface Cluster extends AsyncDisposable {
  readonly home: string;
  /** The first gateway, for example `http://127.0.0.1:8787`. */
  readonly httpUrl: string;
  readonly httpUrls: readonly string[];
  readonly token: string;
  readonly tokenFile: string;
  /** The model in use, in words. */
  readonly model: string;
  /** NATS as the operator. */
  readonly natsUrl: string;
  readonly natsUrls: Readonly<Record<Role, string>>;
  /** PostgreSQL as the owner of the schema. */
  readonly databaseUrl: string;
  readonly redisUrl: string;
  /** The servers that are ours, each kept alive: `restart()` kills one and waits for its successor. */
  readonly servers: Pick<Backing, "postgres" | "redis" | "nats">;
  replicas(): ReplicaState[];
  /** Sends a signal to a replica as it is (numbers begin at 1). After SIGKILL it resolves once the process is gone. */
  kill(service: ServiceName, replica: number, signal: NodeJS.Signals): Promise<void>;
  /** Resolves when the replica is ready: now, or after its next start. */
  whenReady(service: ServiceName, replica: number): Promise<void>;
  /** Ends a replica in good order (SIGTERM) and resolves when its successor is ready. */
  restart(service: ServiceName, replica: number): Promise<void>;
  /** Drains and ends everything it started: gateways first, then agent-core, tool-runner, store, servers. */
  stop(): Promise<void>;
  /** Ends everything at once. */
  stopNow(): Promise<void>;
}

/** Starts the cluster and resolves when every replica has said that it is ready. */
export async function up(options: UpOptions): Promise<Cluster> {
  const { say = () => {} } = options;
  let home: Home;
  let started: Started;
  try {
    home = openHome(options.home);
    started = new Started(home, holdHome(home), say, options.warn ?? say);
  } catch (error) {
    throw knownSystemError(error, options.home) ?? error;
  }
  try {
    return await bringUp(options, home, started);
  } catch (error) {
    await started.stopNow();
    throw knownSystemError(error, home.path) ?? error;
  }
}

async function bringUp(options: UpOptions, home: Home, started: Started): Promise<Cluster> {
  const { say = () => {}, programs = REPOSITORY_PROGRAMS, serversDir = home.servers, servers: given = {} } = options;
  const signal = options.signal ?? new AbortController().signal;
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  const environment: Environment = { PATH, HOME, NODE_COMPILE_CACHE, ...options.environment };
  const namespace = environment.PARLEY_NAMESPACE || "parley";
  const configPath = findConfig(home, environment);
  const settings = readSettings(configPath, environment);

  await endLeftOvers(home);
  const token = keepToken(home, environment.PARLEY_TOKEN);
  const ports = await gatewayPorts(options.httpPort ?? 0, options.replicas?.["channel-gateway"] ?? 1);
  const searchingBwrap = findBubblewrap(serversDir, say);
  const backing = await startBacking({
    home,
    serversDir,
    namespace,
    environment,
    given,
    say,
    trouble: started.trouble,
  });
  started.backing = backing;
  signal.throwIfAborted();

  say("database: migrating");
  const migrateEnv = migrationEnvironment(backing.ownerUrl, environment);
  await migrate(programs.migrate, migrateEnv, join(home.logs, "migrate.log"), signal);

  const facts: ClusterFacts = {
    namespace,
    natsUrls: backing.natsUrls,
    storeUrl: backing.storeUrl,
    redisUrl: backing.redisUrl,
    tokenSha256: sha256(token),
    configPath,
    workspace: home.workspace,
    bwrap: await searchingBwrap,
  };
  const about = {
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
  };
  started.about = about;
  signal.throwIfAborted();
  say(`services: ${services.join(", ")}`);
  startServices(options, environment, facts, ports, home, programs, started);
  await unlessAborted(signal, Promise.all(started.replicas.map((replica) => replica.firstReady)));

  const stop = (): Promise<void> => started.stop();
  return {
    ...about,
    home: home.path,
    token,
    natsUrls: backing.natsUrls,
    servers: backing,
    replicas: () => started.replicas.map((replica) => replica.state()),
    kill: async (service, number, what) => {
      await started.replica(service, number).kill(what);
    },
    whenReady: async (service, number) => started.replica(service, number).whenReady(),
    restart: async (service, number) => started.replica(service, number).restart(),
    stop,
    stopNow: () => started.stopNow(),
    [Symbol.asyncDispose]: stop,
  };
}

function startServices(
  options: UpOptions,
  environment: Environment,
  facts: ClusterFacts,
  ports: readonly number[],
  home: Home,
  programs: Programs,
  started: Started,
): void {
  for (const service of services) {
    for (let number = 1; number <= (options.replicas?.[service] ?? 1); number += 1) {
      const name = `${service}-${number}`;
      const httpPort = service === "channel-gateway" ? (ports[number - 1] ?? null) : null;
      const env = serviceEnvironment(service, { name, httpPort }, facts, environment);
      started.add({
        service,
        number,
        entry: programs.services[service],
        env: { ...env, ...options.env?.all, ...options.env?.[service] },
        cwd: home.path,
        logPath: join(home.logs, `${name}.log`),
        httpPort,
        onLine: options.onServiceLine,
      });
    }
  }
}

/** PARLEY_CONFIG, else parley.toml in the home or the working folder, else null. */
function findConfig(home: Home, environment: Environment): string | null {
  if (environment.PARLEY_CONFIG) return resolve(environment.PARLEY_CONFIG);
  const places = [join(home.path, "parley.toml"), join(process.cwd(), "parley.toml")];
  return places.find((path) => existsSync(path)) ?? null;
}

/** Before anything is started: a wrong setting is said once, not by four services. */
function readSettings(configPath: string | null, environment: Environment): ExplainedSettings {
  try {
    return explainSettings(configPath ?? undefined, environment);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new LocalError("bad_settings", `The settings are wrong:\n${error.message}`, {
      fix: "parley config print --origin shows which value comes from where, once they are right.",
    });
  }
}

async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason as Error);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    signal.throwIfAborted();
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
