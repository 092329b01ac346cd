// Baselines of the machine in this run: a bare model call, a bare round trip over the bus, a bare commit.
import { connectBus } from "@parley/bus";
import { healthReports } from "@parley/contracts";
import type { Cluster } from "@parley/local";
import { Client } from "pg";
import type { FakeModel } from "../fake-model.ts";
import type { Row } from "../row.ts";
import { percentile, sample } from "../measure.ts";

export interface Baselines {
  modelCallMs: number;
  roundTripMs: number;
  commitMs: number;
}

export async function baselines(cluster: Cluster, model: FakeModel, show: (row: Row) => void): Promise<Baselines> {
  const call = async () => {
    const body = JSON.stringify({ messages: [{ role: "user", content: [{ type: "text", text: "hello" }] }] });
    await (await fetch(`${model.url}/v1/messages`, { method: "POST", body })).text();
  };
  await sample(200, 1, call);
  const modelCallMs = percentile(await sample(500, 1, call), 0.5);

  const log = { info() {}, warn() {}, error() {} };
  const bus = await connectBus({ url: cluster.natsUrl, namespace: "parley", role: "operator", name: "bench", log });
  const ask = () => bus.request(healthReports.store, {});
  await sample(100, 1, ask);
  const roundTripMs = percentile(await sample(500, 1, ask), 0.5);
  await bus.drain();

  const client = new Client({ connectionString: cluster.databaseUrl });
  await client.connect();
  await client.query(
    "CREATE TABLE IF NOT EXISTS public.bench_commit (id int PRIMARY KEY, n int); INSERT INTO public.bench_commit VALUES (1, 0) ON CONFLICT DO NOTHING",
  );
  const commit = () => client.query("UPDATE public.bench_commit SET n = n + 1 WHERE id = 1");
  await sample(100, 1, commit);
  const commitMs = percentile(await sample(500, 1, commit), 0.5);
  await client.end();

  show({
    what: "baseline: a bare call to the fake model, p50",
    measured: `${modelCallMs.toFixed(2)} ms`,
    target: "",
    isMet: undefined,
  });
  show({
    what: "baseline: a bare round trip over the bus, p50",
    measured: `${roundTripMs.toFixed(2)} ms`,
    target: "",
    isMet: undefined,
  });
  show({ what: "baseline: a bare commit, p50", measured: `${commitMs.toFixed(2)} ms`, target: "", isMet: undefined });
  return { modelCallMs, roundTripMs, commitMs };
}
