import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { RetryTimes } from "../src/config.ts";
import { retryDelayMs } from "../src/model/call.ts";

// design: 000.12
test("doubles delays with up to 20 % jitter, at least the server's delay and at most the cap", () => {
  const times: RetryTimes = { tries: 8, baseMs: 2_000, capMs: 60_000, firstByteMs: 1, idleMs: 1 };
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 8 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.option(fc.nat(100_000)),
      (attempt, random, asked) => {
        const wait = retryDelayMs(attempt, times, asked ?? undefined, random);
        const exact = 2_000 * 2 ** (attempt - 1);
        assert.ok(wait >= Math.min(exact, 60_000) && wait >= (asked ?? 0));
        assert.ok(wait <= Math.max(Math.min(exact * 1.2, 60_000), asked ?? 0));
      },
    ),
  );
  assert.equal(retryDelayMs(1, times, undefined, 0), 2_000);
  assert.equal(retryDelayMs(1, times, undefined, 1), 2_400);
});
