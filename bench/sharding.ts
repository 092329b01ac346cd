// node bench/sharding.ts: a simulation of one and of several leaders, for docs/decisions/0009. It models only the processor time of the
// leaders' event loops: a turn is three pieces of work, before the model call, during its stream and for its commit, on one queue per leader.
import { parseArgs } from "node:util";
import { percentile } from "./measure.ts";

const { values } = parseArgs({
  options: {
    /** Processor time of agent-core for one turn in milliseconds, from `npm run bench -- --only throughput`. */
    "turn-ms": { type: "string", default: "1.9" },
    /** Median time from the death of a leader to the next turn in milliseconds, from `npm run bench -- --only failover`. */
    "takeover-ms": { type: "string", default: "620" },
    "model-ms": { type: "string", default: "2000" },
  },
});
const turnMs = Number(values["turn-ms"]);
const takeoverMs = Number(values["takeover-ms"]);
const modelMs = Number(values["model-ms"]);

/** Simulated time and the time during which turns are counted, in milliseconds. */
const totalMs = 60_000;
const warmUpMs = 10_000;

/** A small generator with a fixed seed: two runs print the same table. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Work {
  atMs: number;
  leader: number;
  piece: 0 | 1 | 2;
  delayedMs: number;
}

/** Work in the order of its time: a binary heap. */
class Agenda {
  readonly #heap: Work[] = [];

  get size(): number {
    return this.#heap.length;
  }

  add(work: Work): void {
    const heap = this.#heap;
    let at = heap.push(work) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if ((heap[parent]?.atMs ?? 0) <= work.atMs) break;
      heap[at] = heap[parent] as Work;
      at = parent;
    }
    heap[at] = work;
  }

  next(): Work | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && (heap[child + 1]?.atMs ?? 0) < (heap[child]?.atMs ?? 0)) child += 1;
      if ((heap[child]?.atMs ?? 0) >= last.atMs) break;
      heap[at] = heap[child] as Work;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

/** How long turns wait for their leader's event loop at `rate` turns a second; milliseconds. */
function waits(rate: number, leaders: number): { p50: number; p99: number } {
  const draw = random(7);
  const freeAt = Array.from({ length: leaders }, () => 0);
  const agenda = new Agenda();
  for (let atMs = 0; atMs < totalMs; atMs += (-Math.log(1 - draw()) * 1_000) / rate)
    agenda.add({ atMs, leader: Math.floor(draw() * leaders), piece: 0, delayedMs: 0 });
  const delays: number[] = [];
  while (agenda.size > 0) {
    const work = agenda.next() as Work;
    const beginMs = Math.max(work.atMs, freeAt[work.leader] ?? 0);
    const endMs = beginMs + turnMs / 3;
    freeAt[work.leader] = endMs;
    const delayedMs = work.delayedMs + beginMs - work.atMs;
    if (work.piece === 2) {
      if (work.atMs > warmUpMs) delays.push(delayedMs);
    } else {
      agenda.add({ ...work, piece: work.piece === 0 ? 1 : 2, atMs: endMs + modelMs / 2, delayedMs });
    }
  }
  return { p50: percentile(delays, 0.5), p99: percentile(delays, 0.99) };
}

const shards = [1, 2, 4, 8];
console.log(
  `agent-core uses ${turnMs} ms a turn, so one leader with a core of its own ends at ${Math.round(1_000 / turnMs)} turns/s.`,
);
console.log("Wait for the leader's event loop, p50 / p99 in ms (– : the queue grows without end)\n");
console.log(`| turns/s | ${shards.map((count) => `${count} leader${count === 1 ? "" : "s"}`).join(" | ")} |`);
console.log(`|---|${shards.map(() => "---|").join("")}`);
for (const rate of [10, 50, 100, 200, 300, 400, 500, 1_000, 2_000]) {
  const cells = shards.map((count) => {
    if ((rate * turnMs) / 1_000 / count >= 0.98) return "–";
    const { p50, p99 } = waits(rate, count);
    return `${p50.toFixed(1)} / ${p99.toFixed(1)}`;
  });
  console.log(`| ${rate} | ${cells.join(" | ")} |`);
}
console.log("\nDeath of one replica: sessions without a leader, and turns delayed by the takeover at 100 turns/s\n");
console.log("| leaders | sessions | turns |\n|---|---|---|");
for (const count of shards)
  console.log(`| ${count} | ${(100 / count).toFixed(0)} % | ${Math.round((100 * takeoverMs) / 1_000 / count)} |`);
