// Waits for what another process does: nobody tells us of it.
import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";

/** Rejects with `what` when it has not come to pass within ten seconds. */
export async function until(condition: () => boolean, what = "it did not come to pass"): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!condition()) {
    assert.ok(performance.now() < deadline, what);
    await turn();
  }
}
