import assert from "node:assert/strict";
import { test } from "node:test";
import { Cleanup } from "@parley/testing";

test("runs every step when one fails, last first, and throws the failure", async () => {
  const ran: number[] = [];
  const cleanup = new Cleanup();
  for (const step of [1, 2, 3])
    cleanup.add(async () => {
      ran.push(step);
      if (step === 2) throw new Error("step 2 failed");
    });
  await assert.rejects(cleanup[Symbol.asyncDispose](), /step 2 failed/);
  assert.deepEqual(ran, [3, 2, 1]);
});
