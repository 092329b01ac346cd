// `npm test`: fetches the servers the tests run against, then runs every test file, one process each. Arguments are test files or
// flags of `node --test`; without a file it is all of them.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { report } from "./main/report.ts";
import { debianBinary, hasApt } from "./servers/debian.ts";
import { findServer, onPath, SHARED_CACHE_DIR } from "./servers/find.ts";
import { startPostgres, type PostgresServer } from "./servers/postgres.ts";
import { migrate, REPOSITORY_PROGRAMS } from "./supervisor/program.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const TEST_FILES = ["{packages,services}/*/test/**/*.test.ts", "infra/*/test/**/*.test.ts", "test/**/*.test.ts"];

/** Programs of the end-to-end tests and the package each comes in. A test that needs a missing one says so and is skipped. */
const TOOLS = { bwrap: "bubblewrap", inspircd: "inspircd", ii: "ii" };

function say(line: string): void {
  console.error(line);
}

async function fetchPrograms(): Promise<void> {
  await findServer("redis", SHARED_CACHE_DIR, say);
  await findServer("nats", SHARED_CACHE_DIR, say);
  for (const [name, packageName] of Object.entries(TOOLS)) {
    if (onPath(name) !== null) continue;
    if (await hasApt()) await debianBinary(name, packageName, SHARED_CACHE_DIR, say).catch(report);
    else say(`${name} is not here; tests that need it are skipped`);
  }
}

/** Files from which on one PostgreSQL for all of them is started: a single file starts its own sooner. */
const SHARED_POSTGRES_FROM = 8;

/**
 * One PostgreSQL for all test files, with the migrated database that theirs are copied from. It ends with the tests, so nothing in it
 * needs to survive a power cut: `fsync` is off. Tests that end a server start their own.
 */
async function startSharedPostgres(folder: string): Promise<PostgresServer> {
  const server = await startPostgres({
    dataDir: join(folder, "postgres"),
    settings: { fsync: "off", full_page_writes: "off", max_connections: "400" },
  });
  const env = { PATH: process.env["PATH"] ?? "", DATABASE_URL: server.ownerUrl };
  await migrate(REPOSITORY_PROGRAMS.migrate, env, join(folder, "migrate.log"), new AbortController().signal);
  return server;
}

async function runTests(args: readonly string[]): Promise<number> {
  const flags = args.filter((arg) => arg.startsWith("-"));
  const patterns = args.filter((arg) => !arg.startsWith("-"));
  const files = (patterns.length === 0 ? TEST_FILES : patterns).flatMap((pattern) => {
    return existsSync(pattern) && pattern.endsWith(".ts")
      ? [pattern]
      : globSync(pattern, { cwd: root, exclude: (name) => name.includes("node_modules") });
  });
  if (files.length === 0) {
    console.error(`no test file matches ${patterns.join(" ")}`);
    return 1;
  }
  const options = [
    "--test",
    "--conditions=@parley/source",
    "--test-concurrency=2",
    // What hangs is named and ended: the longest file takes under two minutes.
    "--test-timeout=300000",
    "--test-reporter=spec",
    ...flags,
  ];
  const folder = mkdtempSync(join(tmpdir(), "parley-test-run-"));
  const postgres = files.length < SHARED_POSTGRES_FROM ? undefined : await startSharedPostgres(folder);
  try {
    const runner = spawn(process.execPath, [...options, ...longestFirst(files)], {
      cwd: root,
      stdio: ["ignore", "inherit", "inherit"],
      env: {
        ...process.env,
        ...(postgres === undefined ? {} : { PARLEY_TEST_POSTGRES: JSON.stringify(addresses(postgres)) }),
      },
    });
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => runner.kill(signal));
    const [code, signal] = (await once(runner, "exit")) as [number | null, NodeJS.Signals | null];
    return code ?? 128 + constants.signals[signal ?? "SIGKILL"];
  } finally {
    await postgres?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

function addresses({ adminUrl, ownerUrl, storeUrl }: PostgresServer) {
  return { adminUrl, ownerUrl, storeUrl };
}

/** Whole clusters and property tests take longest; begun last, they would leave the other workers idle at the end. */
function longestFirst(files: readonly string[]): string[] {
  const rank = (file: string): number => (/\/e2e\/|\/attacks\/|\/chaos\//.test(file) ? 0 : 1);
  const bytes = new Map(files.map((file) => [file, statSync(resolve(root, file)).size]));
  return files.toSorted((a, b) => rank(a) - rank(b) || (bytes.get(b) ?? 0) - (bytes.get(a) ?? 0));
}

try {
  await fetchPrograms();
  process.exitCode = await runTests(process.argv.slice(2));
} catch (error) {
  report(error);
  process.exitCode = 1;
}
