// Waits for effects of other processes, which send no notification.
import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";

/** Rejects with `what` when the condition is not met within 10 seconds. */
export async function until(condition: () => boolean, what = "the condition was not met"): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!condition()) {
    assert.ok(performance.now() < deadline, what);
    await turn();
  }
}
