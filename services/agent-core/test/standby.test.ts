import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { mayTakeOver } from "../src/leader/standby.ts";

describe("taking over", () => {
  const times = { ttlMs: 6_000, renewMs: 2_000, giveUpMs: 4_000, pingMs: 250, pollMs: 1_000, silentMs: 1_500 };
  const self = { replica: "a", incarnation: "2" };

  test("leaves an answering leader alone and replaces a silent one after 1.5 s", () => {
    const seen = { holder: "b/1", heldSince: 0, now: 10_000, released: undefined };
    assert.equal(mayTakeOver({ ...seen, lastAnswerAt: 8_501 }, self, times), false);
    assert.equal(mayTakeOver({ ...seen, lastAnswerAt: 8_500 }, self, times), true);
  });

  test("gives a new leader the same time to answer", () => {
    const seen = { holder: "c/1", now: 10_000, lastAnswerAt: 1_000, released: undefined };
    assert.equal(mayTakeOver({ ...seen, heldSince: 8_501 }, self, times), false);
    assert.equal(mayTakeOver({ ...seen, heldSince: 8_500 }, self, times), true);
  });

  test("takes a released lock and one of a previous instance of this replica at once", () => {
    const seen = { now: 10_000, heldSince: 10_000, lastAnswerAt: 10_000 };
    assert.equal(mayTakeOver({ ...seen, holder: "b/1", released: "b/1" }, self, times), true);
    assert.equal(mayTakeOver({ ...seen, holder: "a/1", released: undefined }, self, times), true);
    assert.equal(mayTakeOver({ ...seen, holder: "a/2", released: undefined }, self, times), false);
    assert.equal(mayTakeOver({ ...seen, holder: "ab/1", released: "b/1" }, self, times), false);
  });
});
