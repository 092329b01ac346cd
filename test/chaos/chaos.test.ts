// A short chaos run with every eighth fault of the list, so that each kind occurs. `npm run chaos` runs all faults.
import assert from "node:assert/strict";
import { test } from "node:test";
import { run } from "./run.ts";

test("loses and doubles nothing, and fences old leaders, when services are killed", async (context) => {
  const account = await run({
    trials: 7,
    dropHints: 0,
    every: 7,
    report: (result, number) => context.diagnostic(`${number} ${result.fault} ${Math.round(result.durationMs)} ms`),
  });
  assert.deepEqual(account.lost, []);
  assert.deepEqual(account.doubled, []);
  assert.deepEqual(account.violations, []);
  assert.equal(account.staleWrites, 0);
});
