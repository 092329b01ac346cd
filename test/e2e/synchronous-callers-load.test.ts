// Concurrent callers through two gateways while the leader is killed: each gets the answer to its own input.
// `npm run chaos -- --callers` runs every preset with every queue mode.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Cleanup, startTestCluster } from "@parley/testing";
import { loadSize } from "@parley/testing/property-runs";
import { load } from "./support/callers.ts";

const cases = [
  { name: "the settings are the defaults", settings: "", callers: loadSize({ usual: 60, full: 200 }) },
  {
    name: "all of them wait in one thread whose messages interrupt",
    settings: 'preset = "singleton"\n[queue]\nmode = "interrupt"\n',
    callers: loadSize({ usual: 40, full: 100 }),
  },
];

for (const { name, settings, callers } of cases) {
  test(`returns the own answer to each of ${callers} concurrent callers when ${name}`, async (context) => {
    await using cleanup = new Cleanup();
    const replicas = { "agent-core": 2, "channel-gateway": 2 };
    const cluster = await startTestCluster(cleanup, { settings, replicas, processes: ["agent-core"] });
    const begin = performance.now();
    const account = await load({ cluster, callers, others: callers / 10 });
    context.diagnostic(`${Math.round(performance.now() - begin)} ms for the callers`);
    assert.deepEqual(account, { wrong: [], leadersKilled: 1 });
  });
}
