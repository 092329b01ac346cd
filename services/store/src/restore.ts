// `parley restore`: replaces the database and the folders of a deployment by those of a backup. Nothing that the cluster did after the
// backup is repeated by itself: unsent texts become `unknown`, due times of the past are skipped, and processes of before are fenced off.
//   DATABASE_URL=… [PARLEY_BLOB_DIR=…] [PARLEY_WORKSPACE=…] … node restore.js <folder> [--replace]
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { ConfigError, configExitCode } from "@parley/chassis";
import { errorMessage } from "@parley/contracts";
import { Client } from "pg";
import { ManifestSchema, manifestFile, tar, type Manifest } from "./backup.ts";
import { readBackupConfig, type Folders } from "./config.ts";
import { readTables, writeSequences } from "./db/table-files.ts";
import { knownMigrations, migrate } from "./migrate.ts";
import { mebibytes, withProgress, type Doing } from "./db/progress.ts";
import { fromText, nextDue } from "./schedule/recurrence.ts";

/** Far above any epoch or fence that processes acquired after the backup. */
const fenceJump = 1_000_000;

export interface RestoreOptions {
  /** Deletes what the database and the folders contain. Omitted: they must be empty. */
  replace?: boolean;
}

/** Throws for an incomplete or newer backup, and when the target is not empty. */
export async function restore(
  databaseUrl: string,
  folders: Folders,
  source: string,
  { replace = false }: RestoreOptions = {},
  doing: Doing = () => undefined,
): Promise<Manifest> {
  const path = join(source, manifestFile);
  if (!existsSync(path)) throw new Error(`${source} is not a complete backup: it has no ${manifestFile}`);
  const manifest = ManifestSchema.parse(JSON.parse(readFileSync(path, "utf8")));
  if (!knownMigrations().includes(manifest.migration))
    throw new Error(`the backup is of a newer version: this one does not know ${manifest.migration}`);
  for (const name of manifest.folders) checkFolder(folders[name], replace);
  await clearDatabase(databaseUrl, replace);
  await migrate(databaseUrl, { until: manifest.migration });
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query("BEGIN");
    await readTables(client, join(source, "tables"), doing);
    await writeSequences(client, manifest.sequences);
    await fenceOff(client);
    await skipPastDueTimes(client);
    await client.query("COMMIT");
  } finally {
    await client.end();
  }
  await migrate(databaseUrl);
  for (const name of manifest.folders) {
    const file = join(source, `${name}.tar`);
    doing(() => `${name}: unpacking ${mebibytes(statSync(file).size)}`);
    await unpack(file, folders[name], replace);
  }
  return manifest;
}

/** A folder that is not named is not restored. */
function checkFolder(folder: string | undefined, replace: boolean): void {
  if (folder === undefined || replace || !existsSync(folder) || readdirSync(folder).length === 0) return;
  throw new Error(`${folder} is not empty: --replace deletes its contents`);
}

async function clearDatabase(databaseUrl: string, replace: boolean): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ present: boolean }>(
      "SELECT to_regclass('parley.sessions') IS NOT NULL AS present",
    );
    if (rows[0]?.present !== true) return;
    const used = await client.query("SELECT FROM parley.sessions LIMIT 1");
    if (used.rowCount !== 0 && !replace)
      throw new Error("the database contains sessions: --replace deletes them; stop the cluster first");
    await client.query("DROP SCHEMA parley CASCADE");
  } finally {
    await client.end();
  }
}

/** Old leaders get STALE_EPOCH and old owners of connections FENCED. What may have been sent after the backup is not sent again. */
async function fenceOff(client: Client): Promise<void> {
  await client.query(`
    UPDATE parley.leadership SET epoch = epoch + ${fenceJump}, holder = NULL;
    DELETE FROM parley.leader_keys;
    UPDATE parley.leases SET owner = NULL, expires_at = now(), fence = fence + ${fenceJump};
    UPDATE parley.outbox SET state = 'unknown', settled_at = now(), error = 'restored from a backup',
      claim_replica = NULL, claim_incarnation = NULL, claim_until = NULL
    WHERE state IN ('pending', 'sending')`);
}

async function skipPastDueTimes(client: Client): Promise<void> {
  const { rows } = await client.query<{ id: string; schedule: string; time_zone: string; anchor: Date }>(
    "SELECT id, schedule, time_zone, anchor FROM parley.schedules WHERE next_due <= now()",
  );
  for (const { id, schedule, time_zone: timeZone, anchor } of rows) {
    const next = nextDue(fromText(schedule), timeZone, anchor.getTime(), Date.now());
    await client.query(
      "UPDATE parley.schedules SET next_due = $2::timestamptz, enabled = enabled AND $2::timestamptz IS NOT NULL WHERE id = $1",
      [id, next === null ? null : new Date(next)],
    );
  }
}

async function unpack(file: string, folder: string | undefined, replace: boolean): Promise<void> {
  if (folder === undefined) return;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (replace) for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true });
  const code = await tar(["--extract", "--file", file, "--directory", folder]);
  if (code !== 0) throw new Error(`${folder} could not be unpacked: tar ended with ${code}`);
}

if (import.meta.main) {
  const [source, ...options] = process.argv.slice(2);
  if (source === undefined) {
    process.stderr.write("restore: name the folder of a backup\n");
    process.exit(configExitCode);
  }
  try {
    const { databaseUrl, folders } = readBackupConfig();
    const { cutAt } = await withProgress(
      (doing) => restore(databaseUrl, folders, source, { replace: options.includes("--replace") }, doing),
      (line) => process.stderr.write(`restore: ${line}\n`),
    );
    process.stdout.write(`restore: the deployment is as of ${cutAt}\n`);
  } catch (error) {
    process.stderr.write(`restore: ${errorMessage(error)}\n`);
    process.exit(error instanceof ConfigError ? configExitCode : 1);
  }
}
