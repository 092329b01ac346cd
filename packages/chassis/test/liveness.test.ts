// The reply of `/livez`: whether the service still works.
import assert from "node:assert/strict";
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { listenHealth, type HealthOptions } from "../src/health.ts";
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
  assert.equal(await live(), first, "immediately while the first check hangs");
  assert.equal(checks, 1);
  hanging.resolve(undefined);
  // The ended check is cleared in a few microtasks.
  await setImmediate();
  assert.equal(await live(), undefined);
  assert.equal(checks, 2);
});

const listen = (live?: HealthOptions["live"]) =>
  listenHealth({
    host: "127.0.0.1",
    port: 0,
    metrics: createMetrics("store").registry,
    startup: () => null,
    unready: () => null,
    ...(live === undefined ? {} : { live }),
  });

test("answers /livez with 503 and the reason when the service cannot work", async () => {
  let problem: string | undefined = "its threads are blocked";
  const health = await listen(async () => problem);
  const probe = async () => {
    const response = await fetch(`http://127.0.0.1:${health.port}/livez`);
    return [response.status, await response.text()];
  };
  assert.deepEqual(await probe(), [503, "its threads are blocked\n"]);
  problem = undefined;
  assert.deepEqual(await probe(), [200, "ok\n"]);
  await health.close();
});

test("refuses a request to another host name when it listens on loopback", async (context) => {
  const health = await listen();
  context.after(() => health.close());
  const statusOf = async (host: string) => {
    const request = get({ host: "127.0.0.1", port: health.port, path: "/metrics", headers: { host }, agent: false });
    const [response] = (await once(request, "response")) as [IncomingMessage];
    response.resume();
    return response.statusCode;
  };
  assert.equal(await statusOf(`rebound.example:${health.port}`), 403);
  for (const name of ["127.0.0.1", "localhost", "[::1]"]) assert.equal(await statusOf(`${name}:${health.port}`), 200);
});
