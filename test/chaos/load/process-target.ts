// A cluster of processes on this machine as the target of scenes: two replicas of each service, each with a TCP link of its own to the
// bus, and three servers that can be killed.
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { services, type ServiceName } from "@parley/contracts";
import { natsUsers, startNats } from "@parley/local";
import {
  startTcpLink,
  startTelegramPeer,
  startTestCluster,
  temporaryFolder,
  type Cleanup,
  type TcpLink,
} from "@parley/testing";
import { startChaosDatabase } from "../setup.ts";
import { telegramPeople } from "./clients.ts";
import { startFront } from "./front.ts";
import type { LoadCluster } from "./run.ts";
import type { SceneTarget } from "./scenes.ts";

const replicasEach = 2;
const pauseMs = 2_000;

export async function startProcessCluster(cleanup: Cleanup): Promise<LoadCluster> {
  const database = await startChaosDatabase(cleanup);
  const bus = await startBus(cleanup);
  const telegram = await startTelegramPeer();
  cleanup.add(() => telegram.close());
  const links = new Map<string, TcpLink>();
  const env: Record<string, Record<string, string>> = {
    "channel-gateway": { PARLEY_CHANNEL_TELEGRAM: telegram.token },
  };
  for (const service of services) {
    for (let number = 1; number <= replicasEach; number += 1) {
      const name = `${service}-${number}`;
      const link = await startTcpLink(cleanup, bus.port);
      const url = new URL(bus.urlFor(service));
      url.port = String(link.port);
      links.set(name, link);
      env[name] = { PARLEY_NATS_URL: url.href };
    }
  }
  const cluster = await startTestCluster(cleanup, {
    servers: { postgres: database.server(), nats: bus },
    replicas: Object.fromEntries(services.map((service) => [service, replicasEach])),
    settings: `
[session]
policy = "per_conversation"
[queue]
mode = "queue"
[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "${telegram.url}"
allow_from = ${JSON.stringify(telegramPeople.map(String))}
dm_policy = "allowlist"
preview = false
`,
    env,
  });
  const effectsFolder = join(cluster.home, "workspace", "effects");
  await mkdir(effectsFolder, { recursive: true });
  const url = await startFront(cleanup, () =>
    cluster
      .replicas()
      .flatMap(({ name, httpPort, healthPort }) =>
        httpPort === null || healthPort === null ? [] : [{ name, httpPort, healthPort }],
      ),
  );
  const numbersOf = (service: ServiceName) =>
    cluster.replicas().flatMap((replica) => (replica.service === service ? [replica.number] : []));
  const eachReplica = async (service: ServiceName, act: (number: number) => Promise<unknown>): Promise<void> => {
    for (const number of numbersOf(service)) {
      await act(number);
      await cluster.whenReady(service, number);
      await delay(pauseMs);
    }
  };
  const target: SceneTarget = {
    rollOut: (service) => eachReplica(service, (number) => cluster.restart(service, number)),
    kill: (service) => eachReplica(service, (number) => cluster.kill(service, number, "SIGKILL")),
    cut: (service, forMs) =>
      eachReplica(service, async (number) => {
        const link = links.get(`${service}-${number}`);
        link?.cut();
        await delay(forMs);
        await link?.restore();
      }),
    async restartServer(server) {
      if (server === "postgres") return database.restart();
      if (server === "nats") return bus.restart();
      await cluster.servers.redis?.restart();
    },
    scale: (service, count) => cluster.scale(service, count),
  };
  return {
    target,
    token: cluster.token,
    telegram,
    url,
    query: (text, values) => database.query(text, values),
    async effects() {
      const ids = await readdir(effectsFolder);
      const counts = await Promise.all(
        ids.map(async (id): Promise<[string, number]> => {
          const text = await readFile(join(effectsFolder, id), "utf8");
          return [id, text.split("\n").filter((line) => line !== "").length];
        }),
      );
      return new Map(counts);
    },
  };
}

/** A NATS server that a scene can kill; it starts again at the same address. Pings as in infra/nats/nats.conf. */
async function startBus(cleanup: Cleanup) {
  const pingIntervalSeconds = 2;
  const dataDir = join(await temporaryFolder(cleanup), "nats");
  const users = natsUsers("parley");
  let server = await startNats({ dataDir, users, pingIntervalSeconds });
  const { port } = server;
  cleanup.add(() => server.stop());
  return {
    port,
    urlFor: (user: string) => server.urlFor(user),
    async restart() {
      await server.kill("SIGKILL");
      server = await startNats({ dataDir, users, port, pingIntervalSeconds });
    },
  };
}
