// What a server that listens answers, as far as it is understood.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { devicesOf, pageOf, sourceArguments, startedSession } from "../../src/voice/stt-answers.ts";

describe("a page of events", () => {
  const Event = fc.record({ seq: fc.integer({ min: 0, max: 50 }), type: fc.string(), text: fc.option(fc.string()) });

  test("holds only what lies behind the cursor, in order, as much as was asked for, whatever the server sends", () => {
    fc.assert(
      fc.property(
        fc.array(Event),
        fc.integer({ min: 0, max: 50 }),
        fc.integer({ min: 1, max: 20 }),
        (events, since, limit) => {
          const page = pageOf({ events }, since, limit);
          const numbers = page.events.map(({ seq }) => seq);
          assert.ok(numbers.every((seq) => seq > since));
          assert.deepEqual(
            numbers,
            numbers.toSorted((a, b) => a - b),
          );
          assert.ok(numbers.length <= limit);
          // The oldest come first: what was left out lies behind them and is asked for next.
          const all = events
            .map(({ seq }) => seq)
            .filter((seq) => seq > since)
            .toSorted((a, b) => a - b);
          assert.deepEqual(numbers, all.slice(0, limit));
        },
      ),
    );
  });

  test("that is as long as it may be asks for the next one at once; one that brings nothing new never does", () => {
    const events = [1, 2].map((seq) => ({ seq, type: "utterance_final", text: "x" }));
    assert.equal(pageOf({ events }, 0, 2).full, true);
    assert.equal(pageOf({ events }, 0, 3).full, false);
    assert.equal(pageOf({ events }, 2, 2).full, false, "a server that ignores the cursor is not asked in a circle");
  });

  test("says that the session is over only when there is nothing left to keep", () => {
    const events = [{ seq: 1, type: "utterance_final", text: "the last word" }];
    assert.equal(pageOf({ status: "stopped", events }, 0, 100).ended, null);
    assert.match(pageOf({ status: "Failed", events }, 1, 100).ended ?? "", /session is failed/);
    assert.equal(pageOf({ status: "active", events: [] }, 1, 100).ended, null);
  });

  test("that cannot be read is a failure, and no empty page", () => {
    assert.throws(() => pageOf({ events: "none" }, 0, 100), /cannot be read/);
    assert.throws(() => pageOf({ events: [{ type: "utterance_final", text: "no number" }] }, 0, 100), /cannot be read/);
    assert.deepEqual(pageOf({}, 0, 100).events, []);
  });
});

test("a beginning without a session's id is none", () => {
  assert.equal(startedSession({ session_id: 7, status: "active" }), "7");
  assert.throws(() => startedSession({ session: "7" }), /no session_id/);
});

test("a device is meant by its id or its name, whatever the case; one that is not listed goes by its name alone", () => {
  const devices = devicesOf({ devices: [{ id: 3, name: "Headset" }, { device_id: "b" }, { rate: 1 }] });
  assert.deepEqual(devices, [
    { id: "3", name: "Headset" },
    { id: "b", name: null },
  ]);
  assert.deepEqual(sourceArguments("headset", devices), {
    source: "microphone",
    mic_device_id: "3",
    mic_device_name: "Headset",
  });
  assert.deepEqual(sourceArguments("B", devices), { source: "microphone", mic_device_id: "b" });
  assert.deepEqual(sourceArguments("Desk", devices), { source: "microphone", mic_device_name: "Desk" });
  assert.deepEqual(sourceArguments("loopback", devices), { source: "loopback" });
});
