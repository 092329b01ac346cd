// The reply of `/livez`: whether the service still works.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { listenHealth } from "../src/health.ts";
import { createLiveness } from "../src/liveness.ts";
import { createMetrics } from "../src/metrics.ts";

test("reports no problem each time the check ends in time", async () => {
  let checks = 0;
  const live = createLiveness(async () => {
    checks += 1;
  });
  assert.deepEqual([await live(), await live(), checks], [undefined, undefined, 2]);
});

test("names the reason when the check fails, and recovers when it works again", async () => {
  let broken = true;
  const live = createLiveness(async () => {
    if (broken) throw new Error("the disk is gone");
  });
  assert.equal(await live(), "the service failed its own check: the disk is gone");
  broken = false;
  assert.equal(await live(), undefined);
});

test("starts no second check while one hangs, and recovers when that one ends", async () => {
  let checks = 0;
  const hanging = Promise.withResolvers<undefined>();
  const live = createLiveness(async () => {
    checks += 1;
    if (checks === 1) await hanging.promise;
  }, 20);
  const [first, second] = await Promise.all([live(), live()]);
  assert.match(first ?? "", /not finished its own check within 20 ms/);
  assert.equal(second, first);
  assert.equal(await live(), first, "at once while the first check hangs");
  assert.equal(checks, 1);
  hanging.resolve(undefined);
  // The ended check is cleared in a few microtasks.
  await setImmediate();
  assert.equal(await live(), undefined);
  assert.equal(checks, 2);
});

test("answers /livez with 503 and the reason when the service cannot work", async () => {
  let problem: string | undefined = "its threads are blocked";
  const health = await listenHealth({
    host: "127.0.0.1",
    port: 0,
    metrics: createMetrics("store").registry,
    startup: () => null,
    ready: () => true,
    live: async () => problem,
  });
  const probe = async () => {
    const response = await fetch(`http://127.0.0.1:${health.port}/livez`);
    return [response.status, await response.text()];
  };
  assert.deepEqual(await probe(), [503, "its threads are blocked\n"]);
  problem = undefined;
  assert.deepEqual(await probe(), [200, "ok\n"]);
  await health.close();
});
