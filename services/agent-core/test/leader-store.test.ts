// The client for the store: what it adds to requests, and how it reports another leader.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Bus } from "@parley/bus";
import { store, WireError } from "@parley/contracts";
import { LeadershipLostError, LeaderStore } from "../src/store-client/leader-store.ts";

/** A bus that records inputs and rejects with this error, if there is one. */
function recording(error?: Error) {
  const inputs: Record<string, unknown>[] = [];
  const request: unknown = async (_: unknown, input: Record<string, unknown>) => {
    inputs.push(input);
    if (error !== undefined) throw error;
    return {};
  };
  return { inputs, bus: { request } as Pick<Bus, "request"> };
}

test("adds epoch and operation id when the contract has them, and keeps a given operation id", async () => {
  const { inputs, bus } = recording();
  const leaderStore = new LeaderStore(bus, 7, assert.fail);
  await leaderStore.request(store.turnPark, { turnId: "t", waitingFor: [], wakeAt: null });
  await leaderStore.request(store.scheduleRemove, { opId: "given", id: "j" });
  await leaderStore.request(store.sessionGet, { sessionId: "s" });
  const [parked, removed, got] = inputs;
  assert.match(String(parked?.["opId"]), /^[0-9a-f-]{36}$/);
  assert.equal(parked?.["epoch"], 7);
  assert.deepEqual(removed, { opId: "given", id: "j" });
  assert.deepEqual(got, { sessionId: "s" });
});

test("reports the loss of the leadership when the store refuses the epoch", async () => {
  const reasons: string[] = [];
  const { bus } = recording(new WireError("STALE_EPOCH", "epoch 8 leads"));
  const leaderStore = new LeaderStore(bus, 7, (reason) => reasons.push(reason));
  await assert.rejects(leaderStore.request(store.sessionGet, { sessionId: "s" }), LeadershipLostError);
  assert.deepEqual(reasons, ["another agent-core has taken over"]);
});

test("passes other errors on when a request fails", async () => {
  const { bus } = recording(new WireError("NOT_FOUND", "no session"));
  const leaderStore = new LeaderStore(bus, 7, assert.fail);
  const failed = leaderStore.request(store.sessionGet, { sessionId: "s" });
  await assert.rejects(failed, (error) => WireError.is(error, "NOT_FOUND") && !(error instanceof LeadershipLostError));
});
