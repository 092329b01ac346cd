import assert from "node:assert/strict";
import { test } from "node:test";
import { store, controlPing } from "@parley/contracts";
import fc from "fast-check";
import { ResendDelay, ResendDelays } from "../src/resend-delay.ts";

const after = (...durationsMs: number[]): number => {
  const delay = new ResendDelay();
  for (const durationMs of durationsMs) delay.note(durationMs);
  return delay.ms;
};
const replies = (count: number, durationMs: number) => Array.from({ length: count }, () => durationMs);

test("waits a second before the first reply", () => {
  assert.equal(after(), 1_000);
});

test("waits 200 ms when replies are fast, and longer when they become slow", () => {
  const fast = replies(20, 2);
  assert.equal(after(...fast), 200);
  assert.ok(after(...fast, 800) > 600);
  assert.equal(after(...fast, ...replies(10, 2_000)), 2_500);
  assert.equal(after(...replies(10, 2_000), ...replies(60, 2)), 200);
});

test("waits longer than replies that always take the same time", () => {
  fc.assert(
    fc.property(fc.double({ min: 0.1, max: 60_000, noNaN: true }), fc.integer({ min: 1, max: 100 }), (ms, count) => {
      const delayMs = after(...replies(count, ms));
      assert.ok(delayMs >= Math.min(2_500, Math.max(200, ms)) && delayMs <= 2_500);
    }),
  );
});

test("keeps the delays of requests apart, and has none where only one replica can answer", () => {
  const delays = new ResendDelays();
  delays.of(store.inboxPut)?.note(2_000);
  assert.equal(delays.of(store.inboxPut)?.ms, 2_500);
  assert.equal(delays.of(store.leadershipAcquire)?.ms, 1_000);
  assert.equal(delays.of(controlPing), undefined);
});
