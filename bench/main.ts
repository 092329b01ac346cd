// npm run bench: the target figures next to baselines of the same run. It prints medians and asserts nothing.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import {
  repositoryPrograms,
  sharedCacheDir,
  startLocalCluster,
  type Cluster,
  type LocalClusterOptions,
} from "@parley/local";
import { buildBundles } from "../infra/docker/bundle.ts";
import { compare } from "./compare.ts";
import { baselines } from "./rows/baselines.ts";
import { channels } from "./rows/channels.ts";
import { consolePages } from "./rows/console.ts";
import { failover } from "./rows/failover.ts";
import { history } from "./rows/history.ts";
import { idle, idleBundles } from "./rows/idle.ts";
import { memory } from "./rows/memory.ts";
import { memorySize } from "./rows/memory-size.ts";
import { curves, replicated } from "./rows/scaling.ts";
import { schedules } from "./rows/schedules.ts";
import { sockets } from "./rows/sockets.ts";
import { throughput } from "./rows/throughput.ts";
import { turns } from "./rows/turns.ts";
import { waterfall } from "./rows/waterfall.ts";
import { parseLocomo } from "./memory/locomo.ts";
import { questionSet } from "./memory/question-set.ts";
import { startFakeModel } from "./fake-model.ts";
import type { Row } from "./row.ts";

const rows: Row[] = [];
const show = (row: Row) => {
  rows.push(row);
  const mark = row.isMet === undefined ? " " : row.isMet ? "✓" : "✗";
  console.log(`${mark} ${row.what.padEnd(58)} ${row.measured.padEnd(46)} ${row.target}`);
};
const outcome = (): number => (rows.every((row) => row.isMet !== false) ? 0 : 1);

// npm run bench -- --memory FILE: measures only memory recall, with the questions of a file in LoCoMo's format.
// npm run bench -- --only GROUP: measures one group of rows: idle, turns, waterfall, history, throughput, curves, sockets, schedules, console,
// failover, channels or memory. `console` needs Chromium.
// npm run bench -- --compare FOLDER: this tree against another one, in alternation.
const {
  memory: questionFile,
  only,
  compare: otherTree,
} = parseArgs({
  options: { memory: { type: "string" }, only: { type: "string" }, compare: { type: "string" } },
}).values;
if (questionFile !== undefined) {
  const samples = parseLocomo(JSON.parse(await readFile(questionFile, "utf8")));
  for (const row of await memory(basename(questionFile), samples)) show(row);
  process.exit(outcome());
}

if (otherTree !== undefined) {
  const model = await startFakeModel();
  await compare(otherTree, model);
  process.exit(0);
}

const home = await mkdtemp(join(tmpdir(), "parley-bench-"));
const settings = join(home, "parley.toml");
await writeFile(settings, '[session]\npolicy = "per_conversation"\n');
const model = await startFakeModel();

async function startCluster(
  replicas: Record<string, number>,
  env: Readonly<Record<string, string>> = {},
  config = settings,
  programs: NonNullable<LocalClusterOptions["programs"]> = repositoryPrograms,
): Promise<Cluster> {
  return startLocalCluster({
    home,
    httpPort: 0,
    serversDir: sharedCacheDir,
    replicas,
    programs,
    environment: {
      PARLEY_CONFIG: config,
      ANTHROPIC_API_KEY: "sk-bench",
      ANTHROPIC_BASE_URL: model.url,
    },
    env: { all: { PARLEY_LOG_LEVEL: "warn", ...env }, "agent-core": { PARLEY_MODEL: "bench" } },
  });
}

try {
  await (await startCluster({})).stop();
  const begin = performance.now();
  const cluster = await startCluster({});
  const readyMs = performance.now() - begin;
  const gateway = { url: cluster.httpUrl, token: cluster.token };
  const measure = async (group: string, work: () => Promise<Row[]>) => {
    if (only === undefined || only === group) for (const row of await work()) show(row);
  };
  const base = await baselines(cluster, model, show);
  await measure("idle", () => idle(cluster, readyMs));
  await measure("turns", () => turns(gateway, model, base));
  await measure("history", () => history(cluster, gateway, base));
  await measure("throughput", () => throughput(cluster, gateway));
  await measure("curves", () => curves(cluster, gateway));
  await measure("sockets", () => sockets(cluster, gateway));
  await measure("schedules", () => schedules(cluster));
  await measure("console", () => consolePages(cluster, gateway));
  await cluster.stop();

  await measure("idle", async () => {
    const programs = { ...repositoryPrograms, services: await buildBundles() };
    const bundled = await startCluster({}, {}, settings, programs);
    const measured = await idleBundles(bundled);
    await bundled.stop();
    return measured;
  });
  await measure("waterfall", () => waterfall((env) => startCluster({}, env), model));
  for (const service of ["channel-gateway", "store", "tool-runner"] as const) {
    await measure("curves", async () => {
      const several = await startCluster({ [service]: 2 });
      const measured = await replicated(several, `64 sessions, two replicas of ${service}`);
      await several.stop();
      return measured;
    });
  }
  await measure("failover", async () => {
    const pair = await startCluster({ "agent-core": 2 });
    const measured = await failover(pair);
    await pair.stop();
    return measured;
  });
  await measure("channels", () => channels(home, (config, env) => startCluster({ "channel-gateway": 4 }, env, config)));
  await measure("memory", () => memory("our own making", questionSet(10)));
  await measure("memory", memorySize);
} finally {
  model.close();
  await rm(home, { recursive: true, force: true });
}
process.exit(outcome());
