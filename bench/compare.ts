// npm run bench -- --compare FOLDER: the same turns in this tree and in another one (a git worktree with its packages installed). Both clusters
// run all the time and the load alternates between them, so that a busy machine slows both. Prints the medians of the rounds.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { sharedCacheDir, startLocalCluster, type Cluster } from "@parley/local";
import { turn, type Gateway } from "./client.ts";
import type { FakeModel } from "./fake-model.ts";
import { percentile, processorMs, sample, tree } from "./measure.ts";
import { conversations } from "./rows/turns.ts";

const rounds = 5;

interface Side {
  cluster: Cluster;
  gateway: Gateway;
  home: string;
  figures: Map<string, number[]>;
}

/** Measures `folder` and this tree in alternation and prints one line per figure: the other tree, this tree, their ratio. */
export async function compare(folder: string, model: FakeModel): Promise<void> {
  const other = pathToFileURL(join(resolve(folder), "infra/local/src/index.ts")).href;
  const exported = (await import(other)) as Record<"startLocalCluster" | "up", typeof startLocalCluster | undefined>;
  // Older trees export it as `up`.
  const startOther = exported.startLocalCluster ?? exported.up;
  if (startOther === undefined) throw new Error(`${folder} starts no local cluster`);
  const sides = [await begin(startOther, model), await begin(startLocalCluster, model)];
  try {
    for (const side of sides) await sample(300, 4, (lane) => turn(side.gateway, `warm-${lane}`, "hello"));
    for (let round = 0; round < rounds; round++) {
      for (const measure of [single, loaded, tools])
        for (const side of round % 2 === 0 ? sides : sides.toReversed()) await measure(side, round);
    }
    console.log(`load average ${loadavg()[0]?.toFixed(1)}; medians of ${rounds} rounds: ${folder}, this tree, ratio`);
    for (const what of sides[0]?.figures.keys() ?? []) {
      const [before = Number.NaN, after = Number.NaN] = sides.map(({ figures }) =>
        percentile(figures.get(what) ?? [], 0.5),
      );
      const ratio = after === before ? 1 : after / before;
      console.log(
        `${what.padEnd(52)} ${before.toFixed(2).padStart(9)} ${after.toFixed(2).padStart(9)}  × ${ratio.toFixed(2)}`,
      );
    }
  } finally {
    for (const { cluster, home } of sides) {
      await cluster.stop();
      await rm(home, { recursive: true, force: true });
    }
  }
}

async function begin(start: typeof startLocalCluster, model: FakeModel): Promise<Side> {
  const home = await mkdtemp(join(tmpdir(), "parley-bench-"));
  const settings = join(home, "parley.toml");
  await writeFile(settings, '[session]\npolicy = "per_conversation"\n');
  const cluster = await start({
    home,
    httpPort: 0,
    serversDir: sharedCacheDir,
    environment: { PARLEY_CONFIG: settings, ANTHROPIC_API_KEY: "sk-bench", ANTHROPIC_BASE_URL: model.url },
    env: { all: { PARLEY_LOG_LEVEL: "warn" }, "agent-core": { PARLEY_MODEL: "bench" } },
  });
  return { cluster, gateway: { url: cluster.httpUrl, token: cluster.token }, home, figures: new Map() };
}

async function single(side: Side, round: number): Promise<void> {
  const chat = conversations(`single-${round}`);
  const durations = await sample(200, 1, () => turn(side.gateway, chat(), "hello"));
  note(side, "one turn at a time, p50 ms", percentile(durations, 0.5));
  note(side, "one turn at a time, p10 ms", percentile(durations, 0.1));
  const firstTokens: number[] = [];
  await sample(100, 1, async () => firstTokens.push(await turn(side.gateway, chat(), "hello", true)));
  note(side, "first token, p50 ms", percentile(firstTokens, 0.5));
}

async function loaded(side: Side, round: number): Promise<void> {
  const lanes = Array.from({ length: 64 }, (_, lane) => conversations(`lane-${round}-${lane}`));
  const count = 1_200;
  const before = processorByPart(side.cluster);
  const begun = performance.now();
  await sample(count, 64, (lane) => turn(side.gateway, lanes[lane]?.() ?? "", "hello"));
  note(side, "64 sessions, turns/s", (count * 1_000) / (performance.now() - begun));
  noteProcessor(side, "64 sessions", count, before);
}

async function tools(side: Side, round: number): Promise<void> {
  const chat = conversations(`tools-${round}`);
  const count = 40;
  const before = processorByPart(side.cluster);
  const durations = await sample(count, 1, () => turn(side.gateway, chat(), "rounds: 5"));
  note(side, "five tool rounds, p50 ms", percentile(durations, 0.5));
  noteProcessor(side, "five tool rounds", count, before);
}

/** The processor time of each part for one of `count` turns, since `before`. */
function noteProcessor(side: Side, what: string, count: number, before: ReadonlyMap<string, number>): void {
  let total = 0;
  for (const [part, ms] of processorByPart(side.cluster)) {
    const cost = (ms - (before.get(part) ?? 0)) / count;
    total += cost;
    note(side, `${what}, CPU-ms a turn: ${part}`, cost);
  }
  note(side, `${what}, CPU-ms a turn: all`, total);
}

function note({ figures }: Side, what: string, value: number): void {
  figures.set(what, [...(figures.get(what) ?? []), value]);
}

function processorByPart(cluster: Cluster): Map<string, number> {
  const parts = new Map<string, number>();
  for (const { service, process: running } of cluster.replicas())
    if (running !== null) parts.set(service, processorMs(tree([running.pid])));
  const { postgres, nats, redis } = cluster.servers;
  for (const [name, server] of Object.entries({ postgres, nats, redis }))
    if (server !== null) parts.set(name, processorMs(tree([server.current().pid])));
  return parts;
}
