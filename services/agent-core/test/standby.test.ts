import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  absentHolder,
  afterPing,
  initialPresence,
  noticedAnswerAt,
  pingIntervalMs,
  type PingResult,
} from "../src/leader/leader-presence.ts";
import { leaseTimes } from "../src/config.ts";
import { mayTakeOver, takeoverReason } from "../src/leader/standby.ts";

describe("taking over", () => {
  const times = {
    ttlMs: 6_000,
    renewMs: 2_000,
    giveUpMs: 4_000,
    pingMs: 100,
    absentMs: 200,
    pollMs: 1_000,
    silentMs: 1_500,
  };
  const self = { replica: "a", incarnation: "2" };

  test("leaves an answering leader alone and replaces a silent one after 1.5 s", () => {
    const seen = { holder: "b/1", heldSince: 0, now: 10_000, released: undefined, absent: undefined };
    assert.equal(mayTakeOver({ ...seen, lastAnswerAt: 8_501 }, self, times), false);
    assert.equal(mayTakeOver({ ...seen, lastAnswerAt: 8_500 }, self, times), true);
  });

  test("gives a new leader the same time to answer", () => {
    const seen = { holder: "c/1", now: 10_000, lastAnswerAt: 1_000, released: undefined, absent: undefined };
    assert.equal(mayTakeOver({ ...seen, heldSince: 8_501 }, self, times), false);
    assert.equal(mayTakeOver({ ...seen, heldSince: 8_500 }, self, times), true);
  });

  test("takes a released lock and one of a previous instance of this replica immediately", () => {
    const seen = { now: 10_000, heldSince: 10_000, lastAnswerAt: 10_000, absent: undefined };
    assert.equal(mayTakeOver({ ...seen, holder: "b/1", released: "b/1" }, self, times), true);
    assert.equal(mayTakeOver({ ...seen, holder: "a/1", released: undefined }, self, times), true);
    assert.equal(mayTakeOver({ ...seen, holder: "a/2", released: undefined }, self, times), false);
    assert.equal(mayTakeOver({ ...seen, holder: "ab/1", released: "b/1" }, self, times), false);
  });

  test("takes the lock of a leader whose process has ended, and of no other holder", () => {
    const seen = { now: 10_000, heldSince: 10_000, lastAnswerAt: 10_000, released: undefined, absent: "b/1" };
    assert.equal(mayTakeOver({ ...seen, holder: "b/1" }, self, times), true);
    assert.equal(mayTakeOver({ ...seen, holder: "c/1" }, self, times), false);
  });
});

test("names why a leader was replaced", () => {
  const seen = {
    holder: "b/1",
    heldSince: 0,
    now: 10_000,
    lastAnswerAt: 8_400,
    released: undefined,
    absent: undefined,
  };
  assert.equal(takeoverReason(seen), "no answer for 1600 ms");
  assert.equal(takeoverReason({ ...seen, absent: "b/1" }), "its connection to the bus ended");
  assert.equal(takeoverReason({ ...seen, released: "b/1" }), "handed over");
});

describe("the silence of a leader", () => {
  const presence = { ...initialPresence(0), lastAnswerAt: 1_000 };
  const round = (startedAt: number, now: number) => noticedAnswerAt(presence, { startedAt, now, maxMs: 600 });

  test("is the time since its last answer while the standby runs", () => {
    assert.equal(round(2_000, 2_500), 1_000);
    assert.equal(round(2_000, 2_600), 1_000);
  });

  test("does not contain the time in which the standby itself did not run", () => {
    // The ping of 1.1 s should have ended by 1.7 s, but the process ran again at 5 s: it knows of 0.7 s.
    assert.equal(5_000 - round(1_100, 5_000), 700);
    assert.equal(round(900, 90_000), 90_000 - 500, "at most the time until now");
  });
});

describe("the presence of a leader", () => {
  const answer = { type: "answer", holder: "b/1", epoch: 1 } as const;
  const unserved = { type: "unserved" } as const;
  /** The absent holder after these pings, one every 100 ms, with absence after 200 ms. */
  const absentAfter = (pings: [PingResult, connection: number][]) => {
    let presence = initialPresence(0);
    pings.forEach(([result, connection], index) => {
      presence = afterPing(presence, result, { connection, now: index * 100 });
    });
    return absentHolder(presence, (pings.length - 1) * 100, 200);
  };

  test("ends when nobody serves its subject for 200 ms after it had answered", () => {
    assert.equal(
      absentAfter([
        [answer, 1],
        [unserved, 1],
        [unserved, 1],
      ]),
      undefined,
    );
    assert.equal(
      absentAfter([
        [answer, 1],
        [unserved, 1],
        [unserved, 1],
        [unserved, 1],
      ]),
      "b/1",
    );
  });

  test("ends within 225 ms of a kill, whenever the last ping before it was answered", () => {
    const killedAt = 1_000;
    for (let firstPingAt = 0; firstPingAt <= leaseTimes.pingMs; firstPingAt += 5) {
      let presence = initialPresence(0);
      let now = firstPingAt;
      for (;;) {
        presence = afterPing(presence, now < killedAt ? answer : unserved, { connection: 1, now });
        if (absentHolder(presence, now, leaseTimes.absentMs) !== undefined) break;
        now += pingIntervalMs(presence, leaseTimes);
      }
      assert.ok(now - killedAt <= 225, `noticed ${now - killedAt} ms after the kill`);
    }
  });

  test("continues when it answers again, and is unknown when a ping gets no reply", () => {
    assert.equal(
      absentAfter([
        [answer, 1],
        [unserved, 1],
        [unserved, 1],
        [answer, 1],
      ]),
      undefined,
    );
    assert.equal(
      absentAfter([
        [answer, 1],
        [unserved, 1],
        [{ type: "unknown" }, 1],
        [unserved, 1],
      ]),
      undefined,
    );
  });

  test("is unknown when it has not answered since this replica's last reconnect", () => {
    const restarted: [PingResult, number][] = [
      [answer, 1],
      [unserved, 2],
      [unserved, 2],
      [unserved, 2],
      [unserved, 2],
    ];
    assert.equal(absentAfter(restarted), undefined);
    assert.equal(
      absentAfter([
        [unserved, 1],
        [unserved, 1],
        [unserved, 1],
        [unserved, 1],
      ]),
      undefined,
    );
  });
});
