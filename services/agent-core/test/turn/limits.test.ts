import assert from "node:assert/strict";
import { test } from "node:test";
import { noCost, noUsage } from "@parley/contracts";
import fc from "fast-check";
import { limitReached, activeMs, type Limits, type Progress } from "../../src/limits/limits.ts";

const none: Limits = {
  maxIterations: 0,
  maxToolCalls: 0,
  maxTokens: 0,
  maxMicroUsd: 0,
  maxTreeMicroUsd: 0,
  maxMicroUsdPerDay: 0,
  maxIterationsPerSession: 0,
  maxMicroUsdPerSession: 0,
  maxTurnMs: 0,
  maxRoundsWithoutTools: 0,
  maxRepeatedCalls: 0,
};
const begun: Progress = {
  modelSteps: 0,
  toolCalls: 0,
  elapsedMs: 0,
  usage: noUsage,
  cost: noCost,
  treeMicroUsd: 0,
  dayMicroUsd: 0,
  earlierModelSteps: 0,
  earlierMicroUsd: 0,
  roundsWithoutTools: 0,
  repeatedCalls: 0,
};

/** Per limit: progress that reaches it, the exit reason, and what the notice must match. */
const each: Record<keyof Limits, [(value: number) => Partial<Progress>, "max_turns" | "max_budget", RegExp]> = {
  maxIterations: [(value) => ({ modelSteps: value }), "max_turns", /took 120000 steps/],
  maxToolCalls: [(value) => ({ toolCalls: value }), "max_turns", /used tools 120000 times/],
  maxTurnMs: [(value) => ({ elapsedMs: value }), "max_turns", /took 2 minutes/],
  maxRoundsWithoutTools: [(value) => ({ roundsWithoutTools: value }), "max_turns", /without using a tool/],
  maxRepeatedCalls: [(value) => ({ repeatedCalls: value }), "max_turns", /same call 120000 times/],
  maxTokens: [
    (value) => ({ usage: { inputTokens: value - 3, outputTokens: 1, cacheReadTokens: 1, cacheWriteTokens: 1 } }),
    "max_budget",
    /took 120000 tokens/,
  ],
  maxMicroUsd: [
    (value) => ({ cost: { micros: value, unpricedCalls: 0 } }),
    "max_budget",
    /this cost \$0\.12; the limit .* is \$0\.12/,
  ],
  maxTreeMicroUsd: [(value) => ({ treeMicroUsd: value }), "max_budget", /this cost \$0\.12; the limit .* is \$0\.12/],
  maxIterationsPerSession: [
    (value) => ({ earlierModelSteps: value }),
    "max_turns",
    /120000 steps.*\/new.*max_iterations_per_session/,
  ],
  maxMicroUsdPerSession: [
    (value) => ({ earlierMicroUsd: value }),
    "max_budget",
    /it cost \$0\.12.*max_usd_per_session/,
  ],
  maxMicroUsdPerDay: [(value) => ({ dayMicroUsd: value }), "max_budget", /today's budget \(\$0\.12\).*max_usd_per_day/],
};

const limit = 120_000;
const huge: Progress = {
  ...begun,
  ...Object.assign({}, ...Object.values(each).map(([reach]) => reach(1e9))),
} as Progress;

for (const [name, [reach, exitReason, words]] of Object.entries(each)) {
  // design: 001.6, switch.6, 000.39b, 003.2c
  test(`${name}: ends the turn when reached, not before, and names the limit`, () => {
    const limits = { ...none, [name]: limit };
    assert.equal(limitReached(limits, { ...begun, ...reach(limit - 1) }), undefined);
    const finish = limitReached(limits, { ...begun, ...reach(limit) });
    assert.deepEqual([finish?.state, finish?.exitReason], ["failed", exitReason]);
    assert.match(finish?.text ?? "", /^I stopped here: /);
    assert.match(finish?.text ?? "", words);
  });
}

test("excludes the time spent waiting for people and is never negative", () => {
  const startedAt = "2026-01-01T00:00:00.000Z";
  const start = Date.parse(startedAt);
  fc.assert(
    fc.property(fc.nat(), fc.nat(), (worked, waitedMs) => {
      assert.equal(activeMs({ startedAt, waitedMs }, start + worked + waitedMs), worked);
      assert.equal(activeMs({ startedAt, waitedMs }, start - worked), 0);
    }),
  );
});

test("counts one step in the singular", () => {
  const finish = limitReached({ ...none, maxIterations: 1 }, { ...begun, modelSteps: 1 });
  assert.match(finish?.text ?? "", /this took 1 step, the limit/);
});

// design: 003.2b
test("names the limit on turns when the budget is reached at the same time", () => {
  const limits = { ...none, maxIterations: 5, maxMicroUsd: 100 };
  const spent = { cost: { micros: 100, unpricedCalls: 0 } };
  assert.equal(limitReached(limits, { ...begun, ...spent, modelSteps: 5 })?.exitReason, "max_turns");
  assert.equal(limitReached(limits, { ...begun, ...spent, modelSteps: 4 })?.exitReason, "max_budget");
});

// design: 003.2
test("treats 0 as no limit", () => {
  assert.equal(limitReached(none, huge), undefined);
});

test("continues within all limits and ends with a notice beyond any of them", () => {
  const limits = fc.record(
    Object.fromEntries(Object.keys(none).map((name) => [name, fc.constantFrom(0, 1, 10)])),
  ) as unknown as fc.Arbitrary<Limits>;
  const reached = fc.record(
    Object.fromEntries(Object.keys(none).map((name) => [name, fc.nat(12)])),
  ) as unknown as fc.Arbitrary<Record<keyof Limits, number>>;
  fc.assert(
    fc.property(limits, reached, (some, values) => {
      const names = Object.keys(none) as (keyof Limits)[];
      const progress = names.reduce<Progress>((sum, name) => {
        const value = values[name] + (name === "maxTokens" ? 3 : 0);
        return { ...sum, ...each[name][0](value) };
      }, begun);
      const sums: Partial<Record<keyof Limits, number>> = {
        maxTokens: values.maxTokens + 3,
        maxIterationsPerSession: values.maxIterationsPerSession + values.maxIterations,
        maxMicroUsdPerSession: values.maxMicroUsdPerSession + Math.max(values.maxMicroUsd, values.maxTreeMicroUsd),
      };
      const over = names.some((name) => some[name] > 0 && (sums[name] ?? values[name]) >= some[name]);
      const finish = limitReached(some, progress);
      assert.equal(finish !== undefined, over);
      if (finish !== undefined) assert.ok(finish.text.length > 20);
    }),
  );
});

test("names the cost and the limit when a call has cost more than was left", () => {
  const spent = { cost: { micros: 15_002_500, unpricedCalls: 0 }, treeMicroUsd: 15_002_500 };
  const text = limitReached(
    { ...none, maxMicroUsd: 1_000_000, maxTreeMicroUsd: 10_000_000 },
    { ...begun, ...spent },
  )?.text;
  assert.match(text ?? "", /this cost \$15\.00; the limit for one request is \$1\.00\./);
});
