// Parsing of the responses of speech-to-text servers.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { devicesOf, parseUpdatePage, sourceArguments, startedSession } from "../../src/voice/stt-responses.ts";

describe("a page of events", () => {
  const Event = fc.record({ seq: fc.integer({ min: 0, max: 50 }), type: fc.string(), text: fc.option(fc.string()) });

  test("contains only events after the cursor, in order and up to the limit, for any response", () => {
    fc.assert(
      fc.property(
        fc.array(Event),
        fc.integer({ min: 0, max: 50 }),
        fc.integer({ min: 1, max: 20 }),
        (events, since, limit) => {
          const page = parseUpdatePage({ events }, since, limit);
          const numbers = page.events.map(({ seq }) => seq);
          assert.ok(numbers.every((seq) => seq > since));
          assert.deepEqual(
            numbers,
            numbers.toSorted((a, b) => a - b),
          );
          assert.ok(numbers.length <= limit);
          // The oldest events come first, so that the next poll returns the omitted ones.
          const all = events
            .map(({ seq }) => seq)
            .filter((seq) => seq > since)
            .toSorted((a, b) => a - b);
          assert.deepEqual(numbers, all.slice(0, limit));
        },
      ),
    );
  });

  test("is full at the maximum length, and never full without new events", () => {
    const events = [1, 2].map((seq) => ({ seq, type: "utterance_final", text: "x" }));
    assert.equal(parseUpdatePage({ events }, 0, 2).full, true);
    assert.equal(parseUpdatePage({ events }, 0, 3).full, false);
    assert.equal(
      parseUpdatePage({ events }, 2, 2).full,
      false,
      "a server that ignores the cursor causes no endless polling",
    );
  });

  test("reports the end of the session only when it contains no events", () => {
    const events = [{ seq: 1, type: "utterance_final", text: "the last word" }];
    assert.equal(parseUpdatePage({ status: "stopped", events }, 0, 100).ended, null);
    assert.match(parseUpdatePage({ status: "Failed", events }, 1, 100).ended ?? "", /session as failed/);
    assert.equal(parseUpdatePage({ status: "active", events: [] }, 1, 100).ended, null);
  });

  test("throws when the response is invalid", () => {
    assert.throws(() => parseUpdatePage({ events: "none" }, 0, 100), /returned invalid events/);
    assert.throws(
      () => parseUpdatePage({ events: [{ type: "utterance_final", text: "no number" }] }, 0, 100),
      /returned invalid events/,
    );
    assert.deepEqual(parseUpdatePage({}, 0, 100).events, []);
  });
});

test("throws when a started session has no id", () => {
  assert.equal(startedSession({ session_id: 7, status: "active" }), "7");
  assert.throws(() => startedSession({ session: "7" }), /no session_id/);
});

test("matches a device by id or name in any case, and passes an unlisted one by name", () => {
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
  assert.deepEqual(sourceArguments("Webcam", devices), { source: "microphone", mic_device_name: "Webcam" });
  assert.deepEqual(sourceArguments("loopback", devices), { source: "loopback" });
});
