// Distributes the test files over processes: starting a process and loading the services costs a small file most of its time. The
// processes with most work start first, so that no long one runs alone at the end.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";

/**
 * Elapsed seconds of the slowest files in a complete run: the work of a file and its waits. They decide only the order and the distribution:
 * a wrong entry costs time, nothing else.
 */
const slowFileSeconds: Readonly<Record<string, number>> = {
  "services/tool-runner/test/escape/escape": 143,
  "test/e2e/alerts": 110,
  "services/tool-runner/test/catalog/crash-walk": 101,
  "services/channel-gateway/test/conformance": 101,
  "packages/console/test/browser/operate": 68,
  "packages/cli/test/terminal-sessions": 68,
  "services/tool-runner/test/checkpoints": 59,
  "services/store/test/bucket": 58,
  "packages/console/test/browser/console": 58,
  "packages/cli/test/add-channels": 58,
  "test/e2e/sdk/tools": 57,
  "infra/local/test/postgres": 57,
  "test/e2e/presets/goat": 53,
  "test/e2e/sdk/query": 52,
  "test/e2e/interactions/loop": 50,
  "test/e2e/sdk/stream": 49,
  "packages/cli/test/terminal": 49,
  "test/e2e/schedules": 47,
  "packages/console/test/browser/chat": 46,
  "test/e2e/channels": 45,
  "test/e2e/sdk/hooks": 44,
  "test/e2e/voice": 40,
  "test/e2e/run": 40,
  "test/e2e/synchronous-callers-load": 38,
  "test/e2e/start": 37,
  "infra/local/test/debian": 37,
  "services/tool-runner/test/exec": 34,
  "test/e2e/presets/delegate": 32,
  "test/attacks/taint": 32,
  "test/path/path": 31,
  "test/e2e/presets/nanobot": 31,
  "test/e2e/interactions/agents": 31,
  "services/tool-runner/test/mcp/conformance": 30,
  "test/chaos/chaos": 29,
  "test/e2e/sdk/agents": 28,
  "test/e2e/killed-runner": 28,
  "test/e2e/sdk/permissions": 27,
  "test/e2e/memory-recall": 27,
  "test/e2e/control": 26,
  "services/tool-runner/test/process": 26,
  "services/channel-gateway/test/previews": 25,
  "services/channel-gateway/test/leases": 25,
  "packages/cli/test/cluster": 25,
  "services/channel-gateway/test/killed-answers": 23,
  "test/e2e/startup": 22,
  "test/e2e/cron-sampling": 22,
  "services/tool-runner/test/read-pdf": 22,
  "services/tool-runner/test/mcp/servers": 22,
  "services/channel-gateway/test/commands": 22,
  "services/channel-gateway/test/added-accounts": 22,
  "services/tool-runner/test/mcp/switches": 20,
  "services/channel-gateway/test/live": 20,
  "services/channel-gateway/test/attachments": 19,
  "packages/testing/test/signal-peer": 19,
  "packages/cli/test/onboard": 19,
  "services/channel-gateway/test/account-problems": 18,
  "services/channel-gateway/test/mcp/mcp": 16,
  "infra/local/test/up": 16,
};
/**
 * No process gets further files from this number of seconds on. Loading the services costs each process three seconds; a process that takes
 * more than five minutes is ended, so on a busy machine too it must stay below.
 */
const fullProcessSeconds = 90;

/** Process state that other files in the process would see, and measurements of the whole process. */
const processStateUse =
  /\bprocess\.env(\[[^\]]*\]|\.\w+)\s*(\?\?|\|\|)?=(?!=)|\bObject\.(assign|definePropert(y|ies))\(\s*process\b|\bprocess\.std(out|err)\.write\s*=|\bdelete process\.env\b|\bprocess\.(on|once|exit|exitCode|chdir|umask|memoryUsage)\b|\/proc\/self\b|\bglobalThis\b|\bmock\.(timers|method|module|fn)\b|\bsetDefault\w+\(|\bstartTracing\b|import\.meta\.main/;
const relativeImport =
  /^(?:import|export)\s+(?!type\b)(?:[^"';]*?\bfrom\s+)?"(\.[^"]+)"|\bimport\(\s*"(\.[^"]+)"\s*\)/gm;

/** Elapsed seconds, estimated from what the file starts. */
function estimate(path: string, name: string): number {
  const listed = slowFileSeconds[name.replace(/\.test\.ts$/, "")];
  if (listed !== undefined) return listed;
  if (/^test\/(e2e|attacks)\//.test(name)) return 12;
  return /"@parley\/(testing|local)"|"node:child_process"|support\//.test(readFileSync(path, "utf8")) ? 5 : 0.8;
}

/** True if neither the test file nor the files of `test` folders that it imports (except types) change or measure their process. */
function mayShare(path: string, seen = new Set<string>()): boolean {
  if (seen.has(path) || !/\/test\//.test(path) || !existsSync(path)) return true;
  seen.add(path);
  const text = readFileSync(path, "utf8");
  if (processStateUse.test(text)) return false;
  return [...text.matchAll(relativeImport)].every(([, from, dynamic]) =>
    mayShare(resolve(dirname(path), from ?? dynamic ?? ""), seen),
  );
}

interface TestProcess {
  files: string[];
  seconds: number;
}

/**
 * Writes one file per process into `folder`, with each test file as a suite, and returns their paths in the order of their names:
 * `node --test` starts them in this order. `files`: absolute paths. `endMs`: how long a process may take to end after its last test.
 */
export function writeTestProcesses(files: readonly string[], root: string, folder: string, endMs = 30_000): string[] {
  const weighed = files
    .map((file) => ({ file, seconds: estimate(file, relative(root, file)) }))
    .toSorted((a, b) => b.seconds - a.seconds);
  const processes: TestProcess[] = [];
  /** The process of each package that still takes files. */
  const open = new Map<string, TestProcess>();
  for (const { file, seconds } of weighed) {
    const home = dirname(relative(root, file)).split("/").slice(0, 2).join("/");
    const shared = mayShare(file);
    const found = shared ? open.get(home) : undefined;
    const used = found ?? { files: [], seconds: 0 };
    if (found === undefined) processes.push(used);
    used.files.push(file);
    used.seconds += seconds;
    if (!shared) continue;
    if (used.seconds >= fullProcessSeconds) open.delete(home);
    else open.set(home, used);
  }
  return processes
    .toSorted((a, b) => b.seconds - a.seconds)
    .map((one, index) => {
      const path = join(
        folder,
        `${String(index).padStart(3, "0")}-${basename(one.files[0] ?? "", ".test.ts")}.test.mjs`,
      );
      writeFileSync(path, programOf(one.files, root, endMs));
      return path;
    });
}

/**
 * A program with each test file as a suite. The files load one after the other, each in the context of its suite: otherwise `node:test`
 * assigns the tests of files that wait for the same module to one suite. A file that ends the process fails it, even with exit code 0,
 * and so does what keeps it running after its last test, for example a server that a failed test has not stopped.
 */
function programOf(files: readonly string[], root: string, endMs: number): string {
  const suites = files.map((file) => [relative(root, file), pathToFileURL(file).href]);
  const times = join(import.meta.dirname, "test-times.ts");
  return `import { AsyncResource } from "node:async_hooks";
import { after, suite } from "node:test";
const { PARLEY_TEST_TIMES: times } = process.env;
const record = times ? (await import(${JSON.stringify(times)})).timesRecorder(times) : undefined;
let hasFinished = false;
process.once("beforeExit", () => (hasFinished = true));
process.on("exit", () => {
  if (hasFinished) return;
  console.error("a test file ended the process before all files had run");
  process.exitCode ||= 1;
});
after(() => {
  setTimeout(() => {
    console.error(\`still running ${endMs / 1_000} s after the last test: \${process.getActiveResourcesInfo().join(", ")}\`);
    process.exit(1);
  }, ${endMs}).unref();
});
let loaded = Promise.resolve();
for (const [name, url] of ${JSON.stringify(suites)}) {
  const previous = loaded;
  const { promise, resolve } = Promise.withResolvers();
  loaded = promise;
  suite(name, async () => {
    if (record) after(() => record(name));
    const load = AsyncResource.bind(() => import(url));
    await previous;
    await load().finally(resolve);
  });
}
`;
}
