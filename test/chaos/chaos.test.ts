// A short run of the chaos: every eighth fault of the list, so that each kind is met. `npm run chaos` runs all of them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { run } from "./run.ts";

test("nothing is lost, doubled or written by a leader whose time is over, whatever is killed", async (context) => {
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
