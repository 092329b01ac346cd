// A whole cluster of real processes for a test, on request with a scripted model that has Anthropic's wire format.
import { mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { services, type ServiceName } from "@parley/contracts";
import {
  repositoryPrograms,
  sharedCacheDir,
  startLocalCluster,
  type Cluster,
  type LocalClusterOptions,
} from "@parley/local";
import { startInProcess } from "./in-process-replica.ts";
import { startScriptedModel, type ScriptedModel } from "./model/scripted-model.ts";
import { startStrictEndpoint, type StrictEndpoint } from "./model/strict-endpoint.ts";
import { servicePrograms } from "./service-programs.ts";
import { sharedDatabase } from "./shared-postgres.ts";
import type { Cleanup } from "./stack.ts";

export interface TestClusterOptions {
  replicas?: LocalClusterOptions["replicas"];
  /** Text of parley.toml. */
  settings?: string;
  env?: LocalClusterOptions["env"];
  /** Servers that the test has started itself. */
  servers?: NonNullable<LocalClusterOptions["servers"]>;
  /**
   * The services that run as processes, because the test kills them, arms their fault points or reads their log. The others run in the
   * test's process, which takes a tenth of the CPU time. Default: all.
   */
  processes?: readonly ServiceName[] | undefined;
  /** Starts a PostgreSQL for this cluster alone, for tests that stop it. Default: a database on the test runner's server. */
  ownPostgres?: boolean;
  /** The scripts of the services and of the migration. Default: `servicePrograms`, and this repository's migration. */
  programs?: LocalClusterOptions["programs"] | undefined;
  /** Uses a scripted model. Default: the rehearsal model. */
  model?: boolean;
  /** A cluster that was stopped; its home and its model are reused. */
  again?: TestCluster;
  /** The cluster's folder, for a test that writes into it before the start. Default: a new folder. */
  home?: string;
}

export interface TestCluster extends Cluster {
  /** The servers it was started with. */
  given: NonNullable<LocalClusterOptions["servers"]>;
  /** Folder of the `FAULT_DIR` orders; `fault(point, action)` arms one. */
  fault(point: string, action: string): Promise<void>;
  /** Fault points that are armed and have not fired. */
  armed(): Promise<string[]>;
  model: string;
  scripted: ScriptedModel | undefined;
  strict: StrictEndpoint | undefined;
  /** The output of the services, newest last. */
  lines: readonly string[];
}

export async function startTestCluster(cleanup: Cleanup, options: TestClusterOptions = {}): Promise<TestCluster> {
  const home = options.again?.home ?? options.home ?? (await folder(cleanup, "parley-cluster-"));
  const { processes = services } = options;
  const faults = await folder(cleanup, "parley-faults-");
  const settings = join(home, "parley.toml");
  if (options.settings !== undefined) await writeFile(settings, options.settings);
  const { scripted, strict } = options.again ?? (await startModel(cleanup, options.model === true));
  const lines: string[] = [];
  const given = { ...options.again?.given, ...options.servers };
  // A restarted cluster reuses its database.
  const own = options.ownPostgres === true || options.again !== undefined;
  const copied = given.postgres === undefined && !own ? await sharedDatabase(cleanup) : undefined;
  const postgres = given.postgres ?? copied;
  const servers = { ...given, ...(postgres === undefined ? {} : { postgres }) };
  const cluster = await startLocalCluster({
    home,
    httpPort: 0,
    serversDir: sharedCacheDir,
    programs: programsOf(options, copied !== undefined),
    startReplica: (replica) => {
      const { service } = replica;
      if (processes.includes(service)) return undefined;
      // From its sources: its modules are loaded in this process already.
      return startInProcess({ ...replica, entry: (options.programs ?? repositoryPrograms).services[service] });
    },
    ...(options.replicas === undefined ? {} : { replicas: options.replicas }),
    servers,
    environment: {
      ...(options.settings === undefined ? {} : { PARLEY_CONFIG: settings }),
      ...(strict === undefined ? {} : { ANTHROPIC_API_KEY: "sk-ant-test-key", ANTHROPIC_BASE_URL: strict.url }),
    },
    env: {
      ...options.env,
      all: { FAULT_DIR: faults, ...options.env?.all },
      "agent-core": { PARLEY_MODEL_RETRY_BASE_MS: "50", ...options.env?.["agent-core"] },
    },
    onServiceLine: (replica, line) => {
      lines.push(`${replica} ${line}`);
      if (process.env["PARLEY_TEST_LOGS"] !== undefined) process.stderr.write(`${replica} | ${line}\n`);
    },
  });
  cleanup.add(() => cluster.stop());
  return Object.assign(cluster, {
    given: servers,
    scripted,
    strict,
    lines,
    armed: () => readdir(faults),
    async fault(point: string, action: string) {
      const service = pointOwners[point.split(".")[0] ?? ""];
      if (service !== undefined && !processes.includes(service)) {
        throw new Error(`${point} never fires: ${service} runs in the test's process; name it in \`processes\`.`);
      }
      // Renamed after writing, because a service must not read an incomplete order.
      await writeFile(join(faults, `.${point}`), action);
      await rename(join(faults, `.${point}`), join(faults, point));
    },
  });
}

/** The service with the fault points of each prefix; points in services not named here are not checked. */
const pointOwners: Readonly<Record<string, ServiceName>> = {
  agent: "agent-core",
  checkpoint: "tool-runner",
  inbox: "channel-gateway",
  outbox: "channel-gateway",
  rewind: "tool-runner",
  store: "store",
  tool: "tool-runner",
  voice: "agent-core",
};

/** A copied database is migrated already. */
function programsOf({ programs }: TestClusterOptions, migrated: boolean): NonNullable<LocalClusterOptions["programs"]> {
  const wanted = programs ?? { ...repositoryPrograms, services: servicePrograms() };
  return migrated ? { ...wanted, migrate: null } : wanted;
}

async function startModel(cleanup: Cleanup, wanted: boolean) {
  if (!wanted) return { scripted: undefined, strict: undefined };
  const scripted = await startScriptedModel();
  cleanup.add(() => scripted.stop());
  const strict = await startStrictEndpoint(scripted.url);
  cleanup.add(() => strict.stop());
  return { scripted, strict };
}

async function folder(cleanup: Cleanup, prefix: string): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), prefix));
  cleanup.add(() => rm(path, { recursive: true, force: true }));
  return path;
}
