// Applies migrations/ in order. Any number of replicas or jobs may run it at the same time. Its role owns the schema; the service's role
// does not.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ConfigError, withSecretsFolder } from "@parley/chassis";
import { errorMessage } from "@parley/contracts";
import { Client } from "pg";
import { advisoryLocks } from "./db/advisory-locks.ts";
import { withTls } from "./db/database-url.ts";
import { parseMigration, type MigrationFile } from "./db/migration-file.ts";

const ownFolder = fileURLToPath(new URL("../migrations/", import.meta.url));
const lockPollMs = 250;
const connectPauseMs = 1_000;

/** Errors of a server that is starting or cannot be reached yet; all others need a person. */
const awayCodes: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ETIMEDOUT",
  // cannot_connect_now: the server is starting or stopping.
  "57P03",
]);

export interface MigrateOptions {
  /** The folder of the files; omitted: those of this build. */
  folder?: string;
  /** Waits while PostgreSQL cannot be reached, and calls this for each new reason. Omitted: the first failure is thrown. */
  onWaiting?: (reason: string) => void;
  /** The last migration to apply; omitted: the newest. */
  until?: string;
}

/** The migrations this build knows, in order. */
export function knownMigrations(folder = ownFolder): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".sql"))
    .sort();
}

/** Returns the names of the applied migrations. After an interruption the next run continues. */
export async function migrate(databaseUrl: string, options: MigrateOptions = {}): Promise<string[]> {
  const folder = options.folder ?? ownFolder;
  const client = await connect(databaseUrl, options.onWaiting);
  try {
    await lock(client);
    await client.query(`
      CREATE SCHEMA IF NOT EXISTS parley;
      CREATE TABLE IF NOT EXISTS parley.schema_migrations (name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`);
    const { rows } = await client.query<{ name: string }>("SELECT name FROM parley.schema_migrations");
    const applied = new Set(rows.map((row) => row.name));
    const missing = knownMigrations(folder).filter((name) => !applied.has(name) && name <= (options.until ?? name));
    for (const name of missing) {
      const file = parseMigration(readFileSync(join(folder, name), "utf8"));
      await apply(client, file, recordOf(client, name, file));
    }
    return missing;
  } finally {
    await client.end();
  }
}

/** The statement that records a migration. The first migrations run before the table has the column for contractions. */
function recordOf(client: Client, name: string, { contractSince }: MigrationFile): string {
  const fields = contractSince === undefined ? { name } : { name, contract_since: contractSince };
  const values = Object.values(fields).map((value) => client.escapeLiteral(value));
  return `INSERT INTO parley.schema_migrations (${Object.keys(fields).join(", ")}) VALUES (${values.join(", ")})`;
}

/** Polls, because a session that blocks on the lock holds a snapshot, for which a concurrent index would wait forever. */
async function lock(client: Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ locked: boolean }>(
      `SELECT pg_try_advisory_lock(${advisoryLocks.migration}) AS locked`,
    );
    if (rows[0]?.locked === true) return;
    await delay(lockPollMs);
  }
}

async function apply(client: Client, { mode, statements }: MigrationFile, record: string): Promise<void> {
  if (mode === "transaction") {
    await client.query(`BEGIN; ${statements.join("")}; ${record}; COMMIT`);
    return;
  }
  for (const statement of statements) {
    if (mode === "concurrent") {
      await dropInvalidIndexes(client);
      await client.query(statement);
    } else {
      while (((await client.query(statement)).rowCount ?? 0) > 0);
    }
  }
  await client.query(record);
}

/** An interrupted concurrent index remains invalid, and IF NOT EXISTS would accept it. */
async function dropInvalidIndexes(client: Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT c.oid::regclass::text AS name FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
     WHERE NOT i.indisvalid AND c.relnamespace = 'parley'::regnamespace`,
  );
  for (const { name } of rows) await client.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
}

async function connect(databaseUrl: string, onWaiting: MigrateOptions["onWaiting"]): Promise<Client> {
  let reported: string | undefined;
  for (;;) {
    const client = new Client({ connectionString: databaseUrl });
    try {
      await client.connect();
      return client;
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : "";
      if (onWaiting === undefined || !awayCodes.has(code)) throw error;
      const reason = errorMessage(error) === "" ? code : errorMessage(error);
      if (reason !== reported) onWaiting(reason);
      reported = reason;
      await delay(connectPauseMs);
    }
  }
}

if (import.meta.main) {
  const onWaiting = (reason: string) => void process.stderr.write(`migrate: waiting for PostgreSQL: ${reason}\n`);
  try {
    const env = withSecretsFolder(process.env);
    const url = env["DATABASE_URL"];
    if (url === undefined || url === "")
      throw new ConfigError("DATABASE_URL is missing: the PostgreSQL URL of the role that owns the schema");
    const waits = process.argv.includes("--wait");
    const applied = await migrate(withTls(url, env), waits ? { onWaiting } : {});
    process.stdout.write(
      applied.length === 0 ? "migrate: nothing to apply\n" : `migrate: applied ${applied.join(", ")}\n`,
    );
  } catch (error) {
    process.stderr.write(`migrate: ${errorMessage(error)}\n`);
    process.exit(error instanceof ConfigError ? 78 : 1);
  }
}
