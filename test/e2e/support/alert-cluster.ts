// A cluster whose links to its servers can be interrupted, and its metrics, for the tests of the alerts.
import { execFile } from "node:child_process";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { connectBus, type Bus } from "@parley/bus";
import { createLogger } from "@parley/chassis";
import { services, type ServiceName } from "@parley/contracts";
import { freePort } from "@parley/local";
import {
  apiClient,
  pollUntil,
  startTcpLink,
  startTelegramPeer,
  startTestCluster,
  startTestPostgres,
  startTestRedis,
  startTlsFront,
  temporaryFolder,
  tlsFixtures,
  type ApiClient,
  type Cleanup,
  type TcpLink,
  type TelegramPeer,
  type TestCluster,
} from "@parley/testing";
import { Client } from "pg";
import { scrape, type Scrape } from "./alert-replay.ts";

/** The sum of a metric's values with these labels; undefined when it is not exported. */
type ReadValue = (name: string, labels?: Readonly<Record<string, string>>) => number | undefined;

export interface AlertCluster {
  cluster: TestCluster;
  client: ApiClient;
  /** With the permissions of a gateway. */
  bus: Bus;
  telegram: TelegramPeer;
  links: Readonly<Record<"postgres" | "redis" | "telegram", TcpLink>>;
  /** A folder for files of the test. */
  folder: string;
  /** The text of parley.toml. */
  settings: string;
  /** The CA file of agent-core's link to Redis. */
  caFile: string;
  /** A certificate that expires in ten days. */
  expiring: string;
  /** Polls until the metrics fulfil the condition, and resolves with them. */
  until: (what: string, fulfilled: (value: ReadValue) => boolean) => Promise<Scrape>;
  /** The metrics of the cluster without a fault. */
  whole: () => Promise<Scrape>;
  /** A message and its turn in a conversation of its own. */
  turn: (text: string) => Promise<unknown>;
  /** Runs a statement in the database. Returns the number of rows. */
  query: (text: string, values?: readonly unknown[]) => Promise<number>;
}

/** One replica of each service, all as processes. */
export async function startAlertCluster(cleanup: Cleanup): Promise<AlertCluster> {
  const folder = await temporaryFolder(cleanup);
  const [postgres, redis] = await Promise.all([startTestPostgres(cleanup), startTestRedis(cleanup)]);
  const telegram = await startTelegramPeer();
  cleanup.add(() => telegram.close());
  const links = {
    postgres: await startTcpLink(cleanup, Number(new URL(postgres.storeUrl).port)),
    redis: await startTcpLink(cleanup, Number(new URL(redis.url).port)),
    telegram: await startTcpLink(cleanup, telegram.port),
  };
  const ports = Object.fromEntries(
    await Promise.all(services.map(async (service) => [service, await freePort()] as const)),
  ) as Record<ServiceName, number>;
  const caFile = join(folder, "ca.pem");
  await copyFile(tlsFixtures.ca, caFile);
  const expiring = await createCertificate(folder);
  const settings = `
[workspace]
max_bytes = 4194304
[permissions]
allow = ["*"]
[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "http://127.0.0.1:${links.telegram.port}"
`;
  const healthPort = (service: ServiceName) => ({ PARLEY_HEALTH_PORT: String(ports[service]) });
  const redisUrl = withPort(redis.serviceUrl, await startTlsFront(cleanup, links.redis.port));
  const cluster = await startTestCluster(cleanup, {
    model: true,
    servers: { postgres, redis },
    settings,
    env: {
      store: { ...healthPort("store"), DATABASE_URL: withPort(postgres.storeUrl, links.postgres.port) },
      "agent-core": {
        ...healthPort("agent-core"),
        REDIS_URL: redisUrl.replace("redis:", "rediss:"),
        REDIS_CA_FILE: caFile,
      },
      "tool-runner": { ...healthPort("tool-runner"), PARLEY_EXEC_ISOLATION: "none" },
      "channel-gateway": { ...healthPort("channel-gateway"), PARLEY_CHANNEL_TELEGRAM: telegram.token },
    },
  });
  const client = apiClient(cluster.httpUrls, cluster.token);
  const bus = await connectBus({
    url: cluster.natsUrls["channel-gateway"],
    namespace: "parley",
    role: "channel-gateway",
    name: "test-alerts",
    log: createLogger({ service: "test", replica: "test", level: "silent" }),
  });
  cleanup.add(() => bus.drain());

  const until: AlertCluster["until"] = async (what, fulfilled) => {
    let last = await scrape(ports);
    let pauseMs = 100;
    await pollUntil(async () => {
      // A scrape is work for all services.
      await delay(pauseMs);
      pauseMs = Math.min(pauseMs * 1.5, 1_500);
      last = await scrape(ports);
      return fulfilled(readerOf(last));
    }, what);
    return last;
  };
  const whole = () =>
    until(
      "a cluster without a fault",
      (value) =>
        value("parley_cluster_measured_timestamp_seconds") !== undefined &&
        value("parley_channel_states", { channel: "telegram", state: "connected" }) === 1 &&
        value("parley_leader") === 1,
    );
  const turn = async (text: string) =>
    client.settled(await client.post(text, { conversation: crypto.randomUUID() }), 120_000);
  const query: AlertCluster["query"] = async (text, values = []) => {
    const database = new Client({ connectionString: postgres.ownerUrl });
    await database.connect();
    try {
      return (await database.query(text, [...values])).rowCount ?? 0;
    } finally {
      await database.end();
    }
  };
  await turn("say: first");
  return { cluster, client, bus, telegram, links, folder, settings, caFile, expiring, until, whole, turn, query };
}

function readerOf({ samples }: Scrape): ReadValue {
  return (name, labels = {}) => {
    const wanted = Object.entries(labels);
    const matching = samples.filter(
      (each) => each.name === name && wanted.every(([label, text]) => each.labels[label] === text),
    );
    return matching.length === 0 ? undefined : matching.reduce((sum, each) => sum + each.value, 0);
  };
}

/** The path of a certificate that is valid for ten days. */
async function createCertificate(folder: string): Promise<string> {
  const file = join(folder, "expiring.pem");
  const options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 10 -subj /CN=old".split(" ");
  await promisify(execFile)("openssl", [...options, "-keyout", join(folder, "expiring.key"), "-out", file]);
  return file;
}

function withPort(url: string, port: number): string {
  const changed = new URL(url);
  changed.port = String(port);
  return changed.href;
}
