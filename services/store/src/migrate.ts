// Applies migrations/ in order. Any number of replicas or jobs may run it at the same time. Its role owns the schema; the service's role
// does not.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ConfigError } from "@parley/chassis";
import { Client } from "pg";
import { withTls } from "./db/database-url.ts";

const folder = fileURLToPath(new URL("../migrations/", import.meta.url));
/** Held while migrations are applied. */
const migrationLock = 7_305_510_219;

/** The migrations this build knows, in order. */
export function knownMigrations(): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".sql"))
    .sort();
}

/** Returns the names of the applied migrations. Each migration is one transaction. */
export async function migrate(databaseUrl: string): Promise<string[]> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(`SELECT pg_advisory_lock(${migrationLock})`);
    await client.query(`
      CREATE SCHEMA IF NOT EXISTS parley;
      CREATE TABLE IF NOT EXISTS parley.schema_migrations (name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`);
    const { rows } = await client.query<{ name: string }>("SELECT name FROM parley.schema_migrations");
    const applied = new Set(rows.map((row) => row.name));
    const missing = knownMigrations().filter((name) => !applied.has(name));
    for (const name of missing) {
      const statements = readFileSync(folder + name, "utf8");
      await client.query(
        `BEGIN; ${statements}; INSERT INTO parley.schema_migrations (name) VALUES (${client.escapeLiteral(name)}); COMMIT`,
      );
    }
    return missing;
  } finally {
    await client.end();
  }
}

if (import.meta.main) {
  const url = process.env["DATABASE_URL"];
  if (url === undefined || url === "") {
    process.stderr.write("migrate: DATABASE_URL is missing: the PostgreSQL URL of the role that owns the schema\n");
    process.exit(78);
  }
  try {
    const applied = await migrate(withTls(url, process.env));
    process.stdout.write(
      applied.length === 0 ? "migrate: nothing to apply\n" : `migrate: applied ${applied.join(", ")}\n`,
    );
  } catch (error) {
    process.stderr.write(`migrate: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(error instanceof ConfigError ? 78 : 1);
  }
}
