// Where the time of one turn goes: the moments at which each service hands data to a socket, in their order, with the medians of the gaps.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Cluster } from "@parley/local";
import { services } from "@parley/contracts";
import { z } from "zod";
import { turn } from "../client.ts";
import type { FakeModel } from "../fake-model.ts";
import { percentile } from "../measure.ts";
import type { Row } from "../row.ts";

const count = 1_000;
/** Five seconds after their start, the services collect the garbage of loading their modules. */
const settledMs = 8_000;
/** Between two turns, so that their writes are not confused. */
const pauseMs = 15;
const Pairs = z.array(z.tuple([z.number(), z.number()]));
const Recorded = z.object({ writes: Pairs, collections: Pairs });
/** The share of the slowest turns that is compared with the others. */
const slowest = 0.02;

type StartCluster = (env: Readonly<Record<string, string>>) => Promise<Cluster>;

export async function waterfall(start: StartCluster, model: FakeModel): Promise<Row[]> {
  const folder = await mkdtemp(join(tmpdir(), "parley-wire-"));
  const hook = fileURLToPath(new URL("../wire-times.ts", import.meta.url));
  const cluster = await start({ NODE_OPTIONS: `--import ${hook}`, PARLEY_BENCH_WIRE: folder });
  const peers = new Map([
    [Number(new URL(cluster.natsUrl).port), "NATS"],
    [Number(new URL(cluster.databaseUrl).port), "PostgreSQL"],
    [Number(new URL(cluster.redisUrl).port), "Redis"],
    [Number(new URL(model.url).port), "model"],
    [0, "caller"],
  ]);
  const gateway = { url: cluster.httpUrl, token: cluster.token };
  await delay(settledMs);
  const spans: { begin: number; end: number }[] = [];
  const now = () => Number(process.hrtime.bigint() / 1_000n);
  for (let each = 0; each < count + 100; each++) {
    const begin = now();
    await turn(gateway, `waterfall-${Math.floor(each / 20)}`, "hello");
    if (each >= 100) spans.push({ begin, end: now() });
    await delay(pauseMs);
  }
  await cluster.stop();
  const { writes, collections } = await readRecords(folder, peers);
  await rm(folder, { recursive: true, force: true });
  const within = (begin: number, end: number) => writes.filter(({ at }) => at >= begin && at <= end);
  const collectedUs = (begin: number, end: number) =>
    collections.reduce((sum, [from, to]) => sum + Math.max(0, Math.min(to, end) - Math.max(from, begin)), 0);
  return rowsOf(
    spans.map(({ begin, end }) => ({ begin, end, steps: within(begin, end), collectedUs: collectedUs(begin, end) })),
  );
}

interface Write {
  at: number;
  what: string;
}

interface Turn {
  begin: number;
  end: number;
  steps: Write[];
  /** Collections of garbage of all services during the turn, in microseconds. */
  collectedUs: number;
}

async function readRecords(folder: string, peers: ReadonlyMap<number, string>) {
  const all = await Promise.all(
    services.map(async (service) => {
      const text = await readFile(join(folder, `${service}.json`), "utf8");
      const { writes, collections } = Recorded.parse(JSON.parse(text));
      const named = writes.flatMap(([at, port]) => {
        const peer = peers.get(port);
        // The probes of the supervisor have other ports, and the lock of the leader uses Redis at any time.
        return peer === undefined || peer === "Redis" ? [] : [{ at, what: `${service} → ${peer}` }];
      });
      return { writes: named, collections };
    }),
  );
  const writes: Write[] = all.flatMap((each) => each.writes).sort((a, b) => a.at - b.at);
  return { writes, collections: all.flatMap((each) => each.collections) };
}

/** Only turns with the most frequent order of writes count: others overlap with periodic work. */
function rowsOf(turns: Turn[]): Row[] {
  const byOrder = Map.groupBy(turns, ({ steps }) => steps.map(({ what }) => what).join("\n"));
  const [, same = []] = [...byOrder].sort(([, a], [, b]) => b.length - a.length)[0] ?? [];
  const whole = percentile(
    same.map(({ begin, end }) => end - begin),
    0.5,
  );
  const row = (what: string, us: number): Row => ({
    what: `waterfall: ${what}`,
    measured: `${(us / 1_000).toFixed(2)} ms (${((100 * us) / whole).toFixed(0)} %)`,
    target: "",
    isMet: undefined,
  });
  const gaps = gapsOf(same).map((each) => percentile(each, 0.5));
  const steps = (same[0]?.steps ?? []).map(({ what }, index) => row(what, gaps[index] ?? 0));
  return [
    ...steps,
    row("caller has the answer", gaps.at(-1) ?? 0),
    row(`whole turn, ${same.length} of ${turns.length} turns in this order`, whole),
    ...slowRows(turns, same),
  ];
}

/** Where the slowest turns lose their time: in collections of garbage, and between which writes. `same`: those with the usual order. */
function slowRows(turns: readonly Turn[], same: readonly Turn[]): Row[] {
  const wholeUs = ({ begin, end }: Turn) => end - begin;
  const limitUs = percentile(turns.map(wholeUs), 1 - slowest);
  const median = (values: number[]) => percentile(values, 0.5);
  const usualGaps = gapsOf(same).map(median);
  const slow = turns.filter((turn) => wholeUs(turn) >= limitUs);
  const excess = slow.map((turn) => wholeUs(turn) - median(turns.map(wholeUs)));
  const total = excess.reduce((sum, each) => sum + each, 0);
  const share = (us: number): string => `${((100 * us) / total).toFixed(0)} %`;
  const collected = (of: readonly Turn[]) => of.reduce((sum, each) => sum + each.collectedUs, 0) / of.length;
  const usual = collected(turns.filter((turn) => wholeUs(turn) < limitUs));
  const lost = gapsOf(slow.filter(({ steps }) => steps.length === same[0]?.steps.length))
    .map((gaps, index) => ({
      until: same[0]?.steps[index]?.what ?? "the caller has the answer",
      us: gaps.reduce((sum, gap) => sum + Math.max(0, gap - (usualGaps[index] ?? 0)), 0),
    }))
    .toSorted((a, b) => b.us - a.us)
    .slice(0, 3);
  const measured = [
    `${(limitUs / 1_000).toFixed(1)} ms and more`,
    `collections ${((collected(slow) - usual) / 1_000).toFixed(2)} ms more than in the others (${share((collected(slow) - usual) * slow.length)})`,
    ...lost.map(({ until, us }) => `until ${until} ${share(us)}`),
  ].join("; ");
  return [{ what: `waterfall: the slowest ${slowest * 100} % of turns`, measured, target: "", isMet: undefined }];
}

/** The gaps between the writes of turns, by position. */
function gapsOf(turns: readonly Turn[]): number[][] {
  const length = turns[0]?.steps.length ?? 0;
  return Array.from({ length: length + 1 }, (_, index) =>
    turns.map(({ begin, end, steps }) => (steps[index]?.at ?? end) - (steps[index - 1]?.at ?? begin)),
  );
}
