// The suite's namespace as a cluster that receives the load of test/chaos/load: clients reach the gateways through forwarded ports, and the
// account reads the database and the workspace.
import { setTimeout as delay } from "node:timers/promises";
import { errorMessage } from "@parley/contracts";
import type { Cleanup } from "@parley/testing";
import { Client } from "pg";
import { entrance, healthPort } from "../../infra/network/call-graph.ts";
import { startFront } from "../chaos/load/front.ts";
import type { LoadCluster } from "../chaos/load/run.ts";
import { clusterTarget } from "./cluster-target.ts";
import { listPods } from "./deployment.ts";
import { Forwards } from "./forwards.ts";
import type { Kubectl } from "./kubectl.ts";

export interface ClusterAccess {
  kubectl: Kubectl;
  namespace: string;
  token: string;
  /** Of PostgreSQL's superuser. */
  databasePassword: string;
}

const followMs = 1_000;
const databasePod = "postgres-0";
const databasePort = 5_432;
const databaseMs = 120_000;
const effectsFolder = "/workspace/effects";
const inRunner = ["exec", "deployment/tool-runner", "--container", "tool-runner", "--"];

export async function openLoadCluster(cleanup: Cleanup, access: ClusterAccess): Promise<LoadCluster> {
  const { kubectl, namespace, token } = access;
  await kubectl.run([...inRunner, "mkdir", "-p", effectsFolder]);
  const url = await frontOfGateways(cleanup, kubectl);
  const database = new Forwards(kubectl, [databasePort]);
  cleanup.add(() => database.close());
  return {
    target: clusterTarget(kubectl, namespace),
    url,
    token,
    async query<Row>(text: string, values: unknown[] = []) {
      for (const deadline = performance.now() + databaseMs; ; await delay(followMs)) {
        await database.follow([databasePod]);
        const port = database.current().get(databasePod)?.ports.get(databasePort);
        try {
          if (port === undefined) throw new Error(`${databasePod} cannot be reached`);
          return await queryAt<Row>(port, access.databasePassword, text, values);
        } catch (error) {
          // The forward belongs to a pod that was replaced; another error repeats itself.
          await database.close();
          if (performance.now() > deadline) throw error;
          if (!isConnectionLost(error)) throw error;
        }
      }
    },
    async effects() {
      return effectCounts(await kubectl.run([...inRunner, "grep", "--recursive", "--count", "", effectsFolder]));
    },
  };
}

/** The files of effects with their lines, from the output of `grep --recursive --count`. */
export function effectCounts(output: string): Map<string, number> {
  const found = [...output.matchAll(/^.*\/([^/:\n]+):(\d+)$/gm)];
  return new Map(found.map(([, id = "", count]) => [id, Number(count)]));
}

function isConnectionLost(error: unknown): boolean {
  const text = errorMessage(error);
  return /cannot be reached|ECONN|terminated|closed|shutting down|starting up|timeout/i.test(text);
}

async function queryAt<Row>(port: number, password: string, text: string, values: unknown[]): Promise<Row[]> {
  const client = new Client({
    host: "127.0.0.1",
    port,
    user: "postgres",
    password,
    database: "parley",
    connectionTimeoutMillis: 10_000,
  });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query(text, values)).rows as Row[];
  } finally {
    await client.end();
  }
}

/** One address for all gateways: each pod has forwarded ports, also while it drains, so that its open requests end as they would. */
async function frontOfGateways(cleanup: Cleanup, kubectl: Kubectl): Promise<string> {
  const forwards = new Forwards(kubectl, [entrance.port, healthPort]);
  const stopping = new AbortController();
  const follow = async (): Promise<void> => {
    const pods = await listPods(kubectl);
    await forwards.follow(
      pods.filter(({ app, isRunning }) => app === entrance.to && isRunning).map(({ name }) => name),
    );
  };
  const watch = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      // A request that fails is made again.
      await follow().catch(() => undefined);
      await delay(followMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  };
  await follow();
  const watching = watch();
  cleanup.add(async () => {
    stopping.abort();
    await watching;
    await forwards.close();
  });
  return startFront(cleanup, () =>
    [...forwards.current()].flatMap(([name, { ports }]) => {
      const [httpPort, health] = [ports.get(entrance.port), ports.get(healthPort)];
      return httpPort === undefined || health === undefined ? [] : [{ name, httpPort, healthPort: health }];
    }),
  );
}
