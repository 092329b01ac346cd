// The cluster of the chaos runs: two replicas of every service, a scripted model, a strict Telegram, a PostgreSQL that
// records the commit time of each row.
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { startPostgres, type PostgresServer } from "@parley/local";
import {
  apiClient,
  startTelegramPeer,
  startTestCluster,
  temporaryFolder,
  type ApiClient,
  type Cleanup,
  type TelegramPeer,
  type TestCluster,
  type TestClusterOptions,
} from "@parley/testing";
import { Client } from "pg";

export interface Chaos {
  cluster: TestCluster;
  client: ApiClient;
  telegram: TelegramPeer;
  query<Row>(text: string, values?: unknown[]): Promise<Row[]>;
  /** Kills the database server and restarts it at the same address. */
  restartPostgres(): Promise<void>;
  /** Number of lines that tools have appended to the effect file of an id: how often its side effect happened. */
  effects(id: string): Promise<number>;
}

export interface ChaosOptions {
  /** Fraction of hints that get lost. */
  dropHints: number;
  /** The scripts of the services and of the migration; this repository's by default. */
  programs?: TestClusterOptions["programs"];
  /** Further variables of all services. */
  env?: Record<string, string> | undefined;
}

/** A database that records the commit time of each row, and that a fault can kill. */
export interface ChaosDatabase {
  server(): PostgresServer;
  query: Chaos["query"];
  restart: Chaos["restartPostgres"];
}

export async function startChaosDatabase(cleanup: Cleanup): Promise<ChaosDatabase> {
  const dataDir = join(await temporaryFolder(cleanup), "postgres");
  const settings = { track_commit_timestamp: "on" };
  let postgres: PostgresServer = await startPostgres({ dataDir, settings });
  cleanup.add(() => postgres.stop());
  return {
    server: () => postgres,
    async query<Row>(text: string, values: unknown[] = []) {
      const client = new Client({ connectionString: postgres.ownerUrl });
      client.on("error", () => undefined);
      await client.connect();
      try {
        return (await client.query(text, values)).rows as Row[];
      } finally {
        await client.end();
      }
    },
    async restart() {
      const { port } = postgres;
      await postgres.kill("SIGKILL");
      postgres = await startPostgres({ dataDir, settings, port });
    },
  };
}

export async function startChaos(cleanup: Cleanup, options: ChaosOptions): Promise<Chaos> {
  const database = await startChaosDatabase(cleanup);
  const telegram = await startTelegramPeer();
  cleanup.add(() => telegram.close());
  const cluster = await startTestCluster(cleanup, {
    model: true,
    servers: { postgres: database.server() },
    programs: options.programs,
    replicas: { store: 2, "agent-core": 2, "tool-runner": 2, "channel-gateway": 2 },
    settings: `
[session]
policy = "per_conversation"
[queue]
mode = "queue"
[permissions]
ask = ["exec(touch approved-*)"]
[compaction]
trigger_turns = 4
keep_last = 2
[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "${telegram.url}"
allow_from = ["1"]
dm_policy = "allowlist"
`,
    env: {
      all: { FAULT_DROP_HINTS: String(options.dropHints), ...options.env },
      "channel-gateway": { PARLEY_CHANNEL_TELEGRAM: telegram.token },
    },
  });
  await mkdir(join(cluster.home, "workspace", "effects"), { recursive: true });

  return {
    cluster,
    telegram,
    client: apiClient(cluster.httpUrls, cluster.token),
    query: (text, values) => database.query(text, values),
    restartPostgres: () => database.restart(),
    async effects(id: string) {
      const text = await readFile(join(cluster.home, "workspace", "effects", id), "utf8").catch(() => "");
      return text.split("\n").filter((line) => line !== "").length;
    },
  };
}
