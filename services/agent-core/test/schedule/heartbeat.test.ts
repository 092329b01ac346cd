// Heartbeat intervals and active hours, empty checklists, and answers that mean nothing needs attention.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import {
  isEmptyChecklist,
  heartbeatText,
  isActive,
  isHeartbeatOk,
  slotOf,
  trustedChecklist,
} from "../../src/schedule/heartbeat.ts";

const at = (iso: string) => Date.parse(iso);

describe("the hours of heartbeats", () => {
  const cases: [string, string, string, boolean][] = [
    ["08:00-22:00", "UTC", "2026-01-15T08:00:00Z", true],
    ["08:00-22:00", "UTC", "2026-01-15T07:59:59Z", false],
    ["08:00-22:00", "UTC", "2026-01-15T22:00:00Z", false],
    ["08:00-24:00", "UTC", "2026-01-15T23:59:00Z", true],
    ["22:00-06:00", "UTC", "2026-01-15T23:00:00Z", true],
    ["22:00-06:00", "UTC", "2026-01-15T12:00:00Z", false],
    ["00:00-00:00", "UTC", "2026-01-15T03:00:00Z", true],
    ["08:00-22:00", "America/New_York", "2026-01-15T09:00:00Z", false],
    ["08:00-22:00", "Asia/Tokyo", "2026-01-15T00:00:00Z", true],
    // The same UTC time, before and after the change to daylight saving time.
    ["08:00-22:00", "Europe/Berlin", "2026-03-28T06:30:00Z", false],
    ["08:00-22:00", "Europe/Berlin", "2026-03-29T06:30:00Z", true],
  ];
  for (const [hours, zone, moment, active] of cases) {
    // design: 004.25c
    test(`${moment} is ${active ? "inside" : "outside"} ${hours} in ${zone}`, () =>
      assert.equal(isActive(hours, zone, at(moment)), active));
  }
});

test("assigns every time to the interval of the configured length that contains it", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_440 }), fc.integer({ min: 0, max: 4_102_444_800_000 }), (minutes, now) => {
      const slot = slotOf(now, minutes);
      assert.ok(slot <= now && now < slot + minutes * 60_000);
      assert.equal(slotOf(slot, minutes), slot);
    }),
  );
});

describe("a checklist", () => {
  const empty = [
    "",
    "# Heartbeat\n\n## Daily\n",
    "<!-- put things\nhere -->\n",
    "# List\n- [ ]\n* [x]\n- [ ] \n-\n1.\n---\n",
    "<!-- never closed",
  ];
  for (const text of empty) test(`${JSON.stringify(text)} is empty`, () => assert.ok(isEmptyChecklist(text)));
  const full = ["- [ ] water the plants", "look at the mail", "# Title\ntext", "<!-- a --> do it", "#hashtag"];
  for (const text of full) test(`${JSON.stringify(text)} is not empty`, () => assert.ok(!isEmptyChecklist(text)));

  // design: 004.30c
  test("is sent in full with the token for an answer without content", () => {
    const text = heartbeatText({ text: "- [ ] water the plants\n", leftOut: 0 }, "ALL_QUIET");
    assert.match(text, /- \[ \] water the plants$/);
    assert.match(text, /ALL_QUIET/);
    assert.match(text, /nobody wrote a message[^]*Do not ask questions; decide by yourself/);
    assert.doesNotMatch(text, /left out/);
  });

  test("omits untrusted lines and reports their number", () => {
    const kept = "# Daily\n- pay the baker\n\n- pay her twice\n- water the plants\n- sell the car\n";
    const checklist = trustedChecklist(kept, [
      { from: 2, to: 4 },
      { from: 6, to: 6 },
    ]);
    assert.deepEqual(checklist, { text: "# Daily\n- water the plants", leftOut: 3 });
    const text = heartbeatText(checklist, "ALL_QUIET");
    assert.match(text, /3 lines are omitted below, .*`parley docs vouch HEARTBEAT\.md`/);
    assert.match(text, /HEARTBEAT\.md:\n\n# Daily\n- water the plants$/);
    assert.match(heartbeatText({ text: "- a", leftOut: 1 }, "OK"), /1 line is omitted/);
    assert.ok(isEmptyChecklist(trustedChecklist(kept, [{ from: 2, to: Number.MAX_SAFE_INTEGER }]).text));
  });
});

describe("an answer", () => {
  const quiet = [
    "HEARTBEAT_OK",
    " HEARTBEAT_OK.\n",
    "**HEARTBEAT_OK**",
    "HEARTBEAT_OK: all done",
    "Nothing to do. HEARTBEAT_OK",
    "`HEARTBEAT_OK`",
  ];
  for (const text of quiet)
    test(`${JSON.stringify(text)} is not sent`, () => assert.ok(isHeartbeatOk(text, "HEARTBEAT_OK")));
  const loud = [
    "",
    "The mail has come.",
    "HEARTBEAT_OKAY",
    "I was told to say HEARTBEAT_OK when all is well, but it is not.",
    "NO_HEARTBEAT_OK",
  ];
  for (const text of loud)
    test(`${JSON.stringify(text)} is sent`, () => assert.ok(!isHeartbeatOk(text, "HEARTBEAT_OK")));
});
