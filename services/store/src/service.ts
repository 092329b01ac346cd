// The store service: waits for the schema, serves PostgreSQL over the bus, and runs the retention.
import { setTimeout as delay } from "node:timers/promises";
import {
  ConfigError,
  explainLinkFailure,
  openChassis,
  exportCertificateExpiry,
  serveHealthReport,
  version,
  type Chassis,
  type RunningService,
  type StartContext,
} from "@parley/chassis";
import { FairSemaphore } from "@parley/kit";
import { DatabaseError } from "pg";
import type { StoreConfig } from "./config.ts";
import { openBackends } from "./blobs/open.ts";
import type { BlobBackends } from "./blobs/backend.ts";
import { exportPool, measureCluster } from "./db/cluster-figures.ts";
import { openDatabase, type Database } from "./db/database.ts";
import { isEncrypted } from "./db/database-url.ts";
import { Grants } from "./grants.ts";
import { fillAllAuthors } from "./memory/authors-of-version.ts";
import { startIndexing } from "./memory/indexer.ts";
import { requireLanguage } from "./memory/refresh-index.ts";
import { knownMigrations } from "./migrate.ts";
import { startRetentionJob } from "./retention/retention.ts";
import { LeaderCapacity } from "./handlers/coordination/leader-capacity.ts";
import { serveRequests } from "./handlers/serve.ts";

/** One of so many connections may serve a request that transfers content. */
const connectionsPerTransfer = 4;

export async function start(
  config: StoreConfig,
  overrides: { chassis?: Chassis; context?: StartContext } = {},
): Promise<RunningService> {
  const chassis =
    overrides.chassis ?? (await openChassis(config, { secrets: secretsOf(config), context: overrides.context }));
  const { bus, log, metrics, startup } = chassis;
  const database = openDatabase(config.databaseUrl, config.poolSize, (error) =>
    log.warn({ err: error }, "idle database connection lost"),
  );
  let readyBackends: BlobBackends | undefined;
  serveHealthReport(bus, config, () => ({
    role: "active",
    epoch: null,
    ready: readyBackends !== undefined && bus.connected,
    details: {
      databaseEncrypted: isEncrypted(config.databaseUrl),
      connections: database.pool.totalCount,
      waiting: database.pool.waitingCount,
      ...(readyBackends === undefined
        ? { waitingFor: startup.reason ?? "" }
        : { attachments: readyBackends.preferred?.name ?? "database" }),
    },
  }));
  await waitForDatabase(database, config.settings.memory.language, chassis);

  const stopping = new AbortController();
  // Not awaited: a version that is read before is filled by its reader.
  void fillAllAuthors(database, stopping.signal).catch((error: unknown) =>
    log.warn({ err: error }, "line authors of older document versions not filled: filled when they are read"),
  );
  const { max_bytes: maxBytes, types, keep_hours: keepHours } = config.settings.attachments;
  const backends = await openBackends(config, log);
  const checkpointDays = config.settings.checkpoints.retention_days;
  startRetentionJob(
    database,
    { ...config, keepHours, backends, checkpointDays },
    config.settings.session,
    log,
    stopping.signal,
  );
  const requestIndexing = startIndexing(database, config.settings.memory, log, stopping.signal);
  const leaderCapacity = new LeaderCapacity(bus);
  const context = {
    database,
    bus,
    grants: new Grants(database),
    leaderCapacity,
    blobRules: { maxBytes, types, backends },
    transferPermits: new FairSemaphore(Math.max(1, Math.floor(config.poolSize / connectionsPerTransfer))),
    memorySettings: config.settings.memory,
    documentsChanged: () => void requestIndexing(),
  };
  const served = serveRequests(context, metrics);
  exportPool(database, metrics);
  exportCertificateExpiry(metrics, "postgres", config.databaseTls);
  const measuring = measureCluster(config.databaseUrl, leaderCapacity, metrics, log, stopping.signal);
  await bus.verifyPermissions();
  readyBackends = backends;

  return {
    metrics,
    log,
    unready: () => bus.problem,
    ended: bus.closed,
    async close() {
      stopping.abort();
      for (const each of served) each.close();
      await bus.drain();
      await requestIndexing();
      await measuring;
      await database.pool.end();
    },
  };
}

function secretsOf({ blobBucket }: StoreConfig): string[] {
  const { secretAccessKey, sessionToken } = blobBucket?.credentials ?? {};
  return [secretAccessKey, sessionToken].filter((secret) => secret !== undefined);
}

/** The Job of k8s/base/migrate.yaml is named after the version. */
function missingMigration(name: string | undefined): string {
  const job = `migrate-${version.replaceAll(".", "-")}`;
  return `migration ${name} is not applied yet; run the migrations (Kubernetes: Job ${job}, Compose: service migrate)`;
}

interface Contraction {
  name: string;
  since: string;
}

/** $1: the version of this build. */
const contraction = `
  SELECT name, contract_since AS since FROM parley.schema_migrations
  WHERE string_to_array(contract_since, '.')::int[] > string_to_array($1, '.')::int[] ORDER BY name DESC LIMIT 1`;

function newerDatabase({ name, since }: Contraction): string {
  return `migration ${name} of a newer version removed what version ${version} needs; install version ${since} or newer, or restore a backup of this version`;
}

/** Codes of a missing schema, table, column or function: each new connection prepares statements of the newest schema. */
const missingObjects: ReadonlySet<string | undefined> = new Set(["3F000", "42P01", "42703", "42883"]);

function lacksSchema(error: unknown): boolean {
  return error instanceof DatabaseError && missingObjects.has(error.code);
}

/**
 * Waits until the database is reachable, has the newest migration of this build, and no newer one that removed what this build needs.
 * Throws ConfigError when it does not support the language of the memory.
 */
async function waitForDatabase(database: Database, language: string, { startup }: Chassis): Promise<void> {
  const wanted = knownMigrations().at(-1);
  const check = async (): Promise<string | null> => {
    try {
      const migrations = "SELECT FROM parley.schema_migrations WHERE name = $1";
      if ((await database.pool.query(migrations, [wanted])).rowCount !== 1) return missingMigration(wanted);
      const { rows } = await database.pool.query<Contraction>(contraction, [version.replace(/-.*/, "")]);
      if (rows[0] !== undefined) return newerDatabase(rows[0]);
      await requireLanguage(database, language);
      return null;
    } catch (error) {
      if (error instanceof ConfigError) throw error;
      return lacksSchema(error) ? missingMigration(wanted) : explainLinkFailure(error, "DATABASE_CA_FILE");
    }
  };
  for (;;) {
    const missing = await check();
    if (missing === null) break;
    startup.waiting("the database", missing);
    await delay(250);
  }
  startup.arrived("the database");
}
