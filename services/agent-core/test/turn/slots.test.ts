// The places of turns: how many are given, to whom, and what becomes of one that is not wanted any more.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Slot, Slots } from "../../src/turn/slots.ts";

const never = new AbortController().signal;

test("a place goes to what came first, whichever asked first", async () => {
  const slots = new Slots(1);
  const release = await slots.take("0", never);
  const order: string[] = [];
  const waiting = ["3", "1", "2"].map(async (came) => {
    const done = await slots.take(came, never);
    order.push(came);
    done();
  });
  release();
  await Promise.all(waiting);
  assert.deepEqual(order, ["1", "2", "3"]);
});

test("who stops waiting takes no place, and a place is given back once", async () => {
  const slots = new Slots(1);
  const release = await slots.take("0", never);
  const gone = new AbortController();
  const left = slots.take("1", gone.signal);
  gone.abort(new Error("stopped"));
  await assert.rejects(left, /stopped/);
  release();
  release();
  const next = await slots.take("2", never);
  let second = false;
  const waits = slots.take("3", never).then((done) => {
    second = true;
    return done;
  });
  await Promise.resolve();
  assert.equal(second, false);
  next();
  (await waits)();
});

test("a place that was left goes to others, and is waited for before the turn goes on", async () => {
  const slots = new Slots(1);
  const place = new Slot(slots, "0");
  await place.back(never);
  await place.back(never);
  place.leave();
  place.leave();
  const other = await slots.take("1", never);
  let held = false;
  const back = place.back(never).then(() => (held = true));
  await Promise.resolve();
  assert.equal(held, false);
  other();
  await back;
  const gone = new AbortController();
  const next = slots.take("2", gone.signal);
  gone.abort(new Error("there was none free"));
  await assert.rejects(next, /none free/);
  place.leave();
  (await slots.take("3", never))();
});

test("a turn that is stopped while it waits for its place has none", async () => {
  const slots = new Slots(1);
  const release = await slots.take("0", never);
  const place = new Slot(slots, "1");
  const gone = new AbortController();
  const back = place.back(gone.signal);
  gone.abort(new Error("stopped"));
  await assert.rejects(back, /stopped/);
  place.leave();
  release();
  (await slots.take("2", never))();
});
