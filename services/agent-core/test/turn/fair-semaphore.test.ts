// Slots of turns: how many there are, who gets them, and what happens to requests that are cancelled.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Permit, FairSemaphore } from "../../src/queue/fair-semaphore.ts";

const never = new AbortController().signal;

test("gives a slot to the earliest input, in any order of requests", async () => {
  const slots = new FairSemaphore(1);
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

test("gives no slot to a cancelled request and releases a slot only once", async () => {
  const slots = new FairSemaphore(1);
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

test("gives a released slot to others and waits for it before the turn continues", async () => {
  const slots = new FairSemaphore(1);
  const place = new Permit(slots, "0");
  await place.acquire(never);
  await place.acquire(never);
  place.release();
  place.release();
  const other = await slots.take("1", never);
  let held = false;
  const back = place.acquire(never).then(() => (held = true));
  await Promise.resolve();
  assert.equal(held, false);
  other();
  await back;
  const gone = new AbortController();
  const next = slots.take("2", gone.signal);
  gone.abort(new Error("there was none free"));
  await assert.rejects(next, /none free/);
  place.release();
  (await slots.take("3", never))();
});

test("gives no slot to a turn that is stopped while waiting", async () => {
  const slots = new FairSemaphore(1);
  const release = await slots.take("0", never);
  const place = new Permit(slots, "1");
  const gone = new AbortController();
  const back = place.acquire(gone.signal);
  gone.abort(new Error("stopped"));
  await assert.rejects(back, /stopped/);
  place.release();
  release();
  (await slots.take("2", never))();
});
