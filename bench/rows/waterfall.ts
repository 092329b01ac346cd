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

const count = 300;
/** Between two turns, so that their writes are not confused. */
const pauseMs = 15;
const Writes = z.array(z.tuple([z.number(), z.number()]));

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
  const spans: { begin: number; end: number }[] = [];
  const now = () => Number(process.hrtime.bigint() / 1_000n);
  for (let each = 0; each < count + 100; each++) {
    const begin = now();
    await turn(gateway, `waterfall-${Math.floor(each / 20)}`, "hello");
    if (each >= 100) spans.push({ begin, end: now() });
    await delay(pauseMs);
  }
  await cluster.stop();
  const writes = await readWrites(folder, peers);
  await rm(folder, { recursive: true, force: true });
  return rowsOf(
    spans.map(({ begin, end }) => ({ begin, end, steps: writes.filter(({ at }) => at >= begin && at <= end) })),
  );
}

interface Write {
  at: number;
  what: string;
}

async function readWrites(folder: string, peers: ReadonlyMap<number, string>): Promise<Write[]> {
  const all = await Promise.all(
    services.map(async (service) => {
      const text = await readFile(join(folder, `${service}.json`), "utf8");
      return Writes.parse(JSON.parse(text)).flatMap(([at, port]) => {
        const peer = peers.get(port);
        // The probes of the supervisor have other ports, and the lock of the leader uses Redis at any time.
        return peer === undefined || peer === "Redis" ? [] : [{ at, what: `${service} → ${peer}` }];
      });
    }),
  );
  return all.flat().sort((a, b) => a.at - b.at);
}

/** Only turns with the most frequent order of writes count: others overlap with periodic work. */
function rowsOf(turns: { begin: number; end: number; steps: Write[] }[]): Row[] {
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
  const steps = (same[0]?.steps ?? []).map(({ what }, index) =>
    row(
      what,
      percentile(
        same.map(({ begin, steps: each }) => (each[index]?.at ?? 0) - (each[index - 1]?.at ?? begin)),
        0.5,
      ),
    ),
  );
  const last = percentile(
    same.map(({ end, steps: each }) => end - (each.at(-1)?.at ?? end)),
    0.5,
  );
  return [
    ...steps,
    row("caller has the answer", last),
    row(`whole turn, ${same.length} of ${turns.length} turns in this order`, whole),
  ];
}
