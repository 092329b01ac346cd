// `npm test`: fetches the servers the tests run against, then runs every test file, one process each. Arguments are test files or
// flags of `node --test`; without a file it is all of them.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync } from "node:fs";
import { constants } from "node:os";
import { fileURLToPath } from "node:url";

import { report } from "./main/report.ts";
import { debianBinary, hasApt } from "./servers/debian.ts";
import { findServer, onPath, SHARED_CACHE_DIR } from "./servers/find.ts";

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
  const runner = spawn(process.execPath, [...options, ...files.sort()], {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
  });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => runner.kill(signal));
  const [code, signal] = (await once(runner, "exit")) as [number | null, NodeJS.Signals | null];
  return code ?? 128 + constants.signals[signal ?? "SIGKILL"];
}

try {
  await fetchPrograms();
  process.exitCode = await runTests(process.argv.slice(2));
} catch (error) {
  report(error);
  process.exitCode = 1;
}
