// The deployment of docker-compose.yml as the target of scenes. Clients use the published port; the account reads PostgreSQL through a network that
// only the scenes add. The engine must be on this machine: a crash ends a process of a container by its id.
import { setTimeout as delay } from "node:timers/promises";
import { errorMessage, type ServiceName } from "@parley/contracts";
import type { Cleanup } from "@parley/testing";
import { Client } from "pg";
import type { LoadCluster } from "../chaos/load/run.ts";
import type { SceneTarget } from "../chaos/load/scenes.ts";
import { effectCounts } from "../cluster/load-cluster.ts";
import { startCompose, type ComposeCluster, type Container } from "./compose-cluster.ts";
import type { Docker } from "./engine.ts";

const pauseMs = 2_000;
const pollMs = 250;
const healthyMs = 120_000;
/**
 * Docker doubles its pause before a restart, up to a minute, until a container has run for 10 s: a server that crashes again and again
 * would be away most of the time (https://docs.docker.com/reference/cli/docker/container/run/#restart).
 */
const steadyMs = 10_000;
const databaseMs = 60_000;
const effectsFolder = "/workspace/effects";
const settings = `[session]
policy = "per_conversation"
[queue]
mode = "queue"
`;

export async function startContainerCluster(cleanup: Cleanup, engine: Docker): Promise<LoadCluster> {
  const cluster = await startCompose(cleanup, engine, {
    settings,
    services: {
      postgres: { command: ["-c", "track_commit_timestamp=on"], networks: ["account"] },
    },
    networks: { account: {} },
  });
  const [runner] = await cluster.containers("tool-runner");
  if (runner === undefined) throw new Error("no tool-runner");
  await cluster.exec(runner, "mkdir", "-p", effectsFolder);
  const passwordFile = "/run/secrets/parley/POSTGRES_PASSWORD";
  const password = await cluster.exec(await only(cluster, "postgres"), "cat", passwordFile);
  return {
    target: containerTarget(cluster),
    url: cluster.url,
    token: cluster.token,
    query: (text, values = []) => query(cluster, password, text, values),
    async effects() {
      const [one] = await cluster.containers("tool-runner");
      if (one === undefined) return new Map();
      // Without a file grep ends with 1.
      const counted = ["sh", "-c", `grep --recursive --count "" ${effectsFolder} || true`];
      return effectCounts(await cluster.exec(one, ...counted));
    },
  };
}

async function only(cluster: ComposeCluster, service: string): Promise<Container> {
  const [container] = await cluster.containers(service);
  if (container === undefined) throw new Error(`no container of ${service}`);
  return container;
}

async function query<Row>(
  cluster: ComposeCluster,
  password: string,
  text: string,
  values: readonly unknown[],
): Promise<Row[]> {
  for (const deadline = performance.now() + databaseMs; ; await delay(pollMs)) {
    try {
      const { NetworkSettings } = await only(cluster, "postgres");
      const host = Object.entries(NetworkSettings.Networks).find(([name]) => name.endsWith("account"))?.[1].IPAddress;
      const client = new Client({ host: host ?? "", user: "postgres", password, database: "parley" });
      client.on("error", () => undefined);
      await client.connect();
      try {
        return (await client.query(text, [...values])).rows as Row[];
      } finally {
        await client.end();
      }
    } catch (error) {
      const isAway = /ECONN|terminated|shutting down|starting up|no container|timeout/i.test(errorMessage(error));
      if (!isAway || performance.now() > deadline) throw error;
    }
  }
}

function containerTarget(cluster: ComposeCluster): SceneTarget {
  const { docker } = cluster;
  const eachReplica = async (service: ServiceName, act: (container: Container) => Promise<unknown>): Promise<void> => {
    for (const container of await cluster.containers(service)) {
      await act(container);
      await untilHealthy(cluster, container);
      await delay(pauseMs);
    }
  };
  return {
    rollOut: (service) => eachReplica(service, ({ Id }) => docker("restart", "--time", "70", Id)),
    kill: (service) => eachReplica(service, (container) => crash(cluster, container)),
    cut: (service, forMs) =>
      eachReplica(service, async ({ Id, NetworkSettings }) => {
        const bus = Object.keys(NetworkSettings.Networks).find((name) => name.endsWith(`bus-${service}`)) ?? "";
        await docker("network", "disconnect", bus, Id);
        await delay(forMs);
        await docker("network", "connect", "--alias", service, bus, Id);
      }),
    async restartServer(server) {
      const container = await only(cluster, server);
      await crash(cluster, container);
      await untilHealthy(cluster, container);
      await delay(steadyMs);
    },
    scale: (service, count) => cluster.up(["--no-recreate", "--scale", `${service}=${count}`]),
  };
}

/** Ends the first process of a container, as a crash does: `docker kill` would also keep the engine from restarting it. */
async function crash(cluster: ComposeCluster, { Id, State }: Container): Promise<void> {
  process.kill(State.Pid, "SIGKILL");
  for (const deadline = performance.now() + healthyMs; performance.now() < deadline; await delay(pollMs)) {
    const again = (await cluster.containers()).find((each) => each.Id === Id);
    if (again !== undefined && again.State.StartedAt !== State.StartedAt) return;
  }
  throw new Error(`${Id} was not restarted`);
}

async function untilHealthy(cluster: ComposeCluster, { Id, Name }: Container): Promise<void> {
  for (const deadline = performance.now() + healthyMs; performance.now() < deadline; await delay(pollMs)) {
    const container = (await cluster.containers()).find((each) => each.Id === Id);
    if (container?.State.Health?.Status === "healthy") return;
  }
  throw new Error(`${Name} did not become healthy`);
}
