// `parley backup`: writes the database, as of one moment, and then the folders of the deployment into a new folder. The cluster keeps running.
//   DATABASE_URL=… [PARLEY_BLOB_DIR=…] [PARLEY_WORKSPACE=…] [PARLEY_CHECKPOINTS=…] [PARLEY_STATE=…] node backup.js <folder>
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ConfigError, configExitCode } from "@parley/chassis";
import { errorMessage } from "@parley/contracts";
import { Client } from "pg";
import { z } from "zod";
import { folderVariables, readBackupConfig, type FolderName, type Folders } from "./config.ts";
import { readSequences, writeTables } from "./db/table-files.ts";
import { mebibytes, withProgress, type Doing } from "./db/progress.ts";

/** Written last: a folder without it is not a complete backup. */
export const manifestFile = "manifest.json";
export const ManifestSchema = z.object({
  format: z.literal(1),
  /** The moment of the database's rows, ISO 8601. */
  cutAt: z.string(),
  /** The newest migration of the database. */
  migration: z.string(),
  tables: z.record(z.string(), z.number()),
  sequences: z.record(z.string(), z.number()),
  folders: z.array(z.enum(["blobs", "workspace", "checkpoints", "state"])),
});
export type Manifest = z.infer<typeof ManifestSchema>;

/** Throws when the target is not empty. Contents in the folder of blobs never change, so they fit the database's moment. */
export async function backup(
  databaseUrl: string,
  folders: Folders,
  target: string,
  doing: Doing = () => undefined,
): Promise<Manifest> {
  mkdirSync(join(target, "tables"), { recursive: true, mode: 0o700 });
  if (readdirSync(target).length > 1) throw new Error(`${target} is not empty: name a new folder`);
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  let database: Omit<Manifest, "format" | "folders">;
  try {
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    const { rows } = await client.query<{ cut: Date; migration: string }>(
      "SELECT now() AS cut, (SELECT max(name) FROM parley.schema_migrations) AS migration",
    );
    const tables = await writeTables(client, join(target, "tables"), doing);
    const [row] = rows;
    if (row === undefined) throw new Error("the database has no schema parley");
    const cutAt = row.cut.toISOString();
    database = { cutAt, migration: row.migration, tables, sequences: await readSequences(client) };
    await client.query("COMMIT");
  } finally {
    await client.end();
  }
  const names = Object.keys(folderVariables).filter((name): name is FolderName => {
    const path = folders[name as FolderName];
    return path !== undefined && existsSync(path);
  });
  for (const name of names) {
    const file = join(target, `${name}.tar`);
    doing(() => `${name}: ${mebibytes(statSync(file, { throwIfNoEntry: false })?.size ?? 0)} packed`);
    await pack(folders[name] ?? "", file);
  }
  const manifest: Manifest = { format: 1, ...database, folders: names };
  writeFileSync(join(target, manifestFile), `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600 });
  return manifest;
}

/** Exit code 1 of tar: a file changed while it was read, which is normal for a workspace in use. */
async function pack(folder: string, file: string): Promise<void> {
  // tar would create it readable for others.
  closeSync(openSync(file, "wx", 0o600));
  const code = await tar(["--create", "--file", file, "--directory", folder, "."]);
  if (code > 1) throw new Error(`${folder} could not be packed: tar ended with ${code}`);
}

/** Returns the exit code. */
export async function tar(args: readonly string[]): Promise<number> {
  const child = spawn("tar", args, { stdio: ["ignore", "ignore", "inherit"] });
  const [code] = (await once(child, "close")) as [number | null];
  return code ?? 2;
}

if (import.meta.main) {
  const [target] = process.argv.slice(2);
  if (target === undefined) {
    process.stderr.write("backup: name a new folder\n");
    process.exit(configExitCode);
  }
  try {
    const config = readBackupConfig();
    const { cutAt, tables, folders } = await withProgress(
      (doing) => backup(config.databaseUrl, config.folders, target, doing),
      (line) => process.stderr.write(`backup: ${line}\n`),
    );
    const rows = Object.values(tables).reduce((sum, count) => sum + count, 0);
    process.stdout.write(`backup: ${rows} rows as of ${cutAt}, folders: ${folders.join(", ") || "none"}\n`);
  } catch (error) {
    process.stderr.write(`backup: ${errorMessage(error)}\n`);
    process.exit(error instanceof ConfigError ? configExitCode : 1);
  }
}
