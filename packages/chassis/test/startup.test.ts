// What a service reports while it waits for its start.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Startup, type StartContext } from "@parley/chassis";

test("reports each reason once and joins the current ones when several things are missing", () => {
  const reported: string[] = [];
  const startup: StartContext["startup"] = new Startup(({ subject, reason }) => reported.push(`${subject}: ${reason}`));
  assert.equal(startup.reason, "starting");
  for (const reason of ["refused", "refused", "reset", "refused"]) startup.waiting("the bus", reason);
  startup.waiting("Redis", "closed");
  assert.deepEqual(reported, ["the bus: refused", "the bus: reset", "Redis: closed"]);
  assert.equal(startup.reason, "waiting for the bus: refused; waiting for Redis: closed");
  startup.arrived("the bus");
  assert.equal(startup.reason, "waiting for Redis: closed");
  startup.finish();
  assert.equal(startup.reason, null);
});
