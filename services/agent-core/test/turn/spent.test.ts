// What a turn has used: the store's totals, plus what was added until the next commit.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { TurnUsage } from "../../src/limits/limits.ts";

const count = fc.integer({ min: 0, max: 1_000_000 });
const anyUsage = fc.record({
  inputTokens: count,
  outputTokens: count,
  cacheReadTokens: count,
  cacheWriteTokens: count,
});
const anyCost = fc.record({ micros: count, unpricedCalls: count });
const anyCall = fc.record({ usage: anyUsage, costMicros: fc.option(count) });
const claimed = fc
  .record({ modelSteps: count, calls: count, usage: anyUsage, cost: anyCost })
  .map(({ calls, ...rest }) => ({ ...rest, nextStep: rest.modelSteps + calls + 1 }));

test("adds model calls of tool calls and counts unpriced ones separately", () => {
  fc.assert(
    fc.property(claimed, fc.array(anyCall), (start, calls) => {
      const spent = new TurnUsage(start);
      for (const { usage, costMicros } of calls) spent.add(usage, costMicros);
      const { usage, cost, modelSteps, toolCalls } = spent.totals;
      const total = (of: (call: (typeof calls)[number]) => number) => calls.reduce((sum, call) => sum + of(call), 0);
      for (const key of ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"] as const)
        assert.equal(usage[key], start.usage[key] + total((call) => call.usage[key]));
      assert.equal(cost.micros, start.cost.micros + total((call) => call.costMicros ?? 0));
      assert.equal(cost.unpricedCalls, start.cost.unpricedCalls + total((call) => (call.costMicros === null ? 1 : 0)));
      assert.deepEqual([modelSteps, toolCalls], [start.modelSteps, start.nextStep - 1 - start.modelSteps]);
    }),
  );
});

test("replaces added usage by the store's totals after a commit and counts its steps", () => {
  fc.assert(
    fc.property(claimed, anyCall, anyUsage, anyCost, fc.nat(50), (start, call, usage, cost, calls) => {
      const spent = new TurnUsage(start);
      const before = spent.totals;
      spent.add(call.usage, call.costMicros);
      spent.committed({ usage, cost }, calls);
      assert.deepEqual(spent.totals, {
        modelSteps: before.modelSteps + 1,
        toolCalls: before.toolCalls + calls,
        usage,
        cost,
      });
    }),
  );
});
