// Due times of jobs: forms of a schedule, time zones, daylight saving, and the outcome of one due time.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { decideRun, type DueJob } from "../src/schedule/decide-run.ts";
import {
  InvalidScheduleError,
  fromText,
  nextDue,
  parseRecurrence,
  readableText,
  toText,
  type Recurrence,
} from "../src/schedule/recurrence.ts";

const now = Date.parse("2026-01-15T12:00:00Z");
const read = (text: string, zone = "UTC") => toText(parseRecurrence(text, zone, now));

/** The next due times of a pattern, as ISO without milliseconds. */
function dues(pattern: string, zone: string, from: string, count: number): string[] {
  const all: string[] = [];
  let at: number | null = Date.parse(from);
  while (all.length < count) {
    at = nextDue({ kind: "cron", pattern }, zone, 0, at);
    if (at === null) break;
    all.push(new Date(at).toISOString().slice(0, 19));
  }
  return all;
}

describe("a schedule as people write it", () => {
  const right: [string, string][] = [
    ["every 30m", "every 1800s"],
    ["every 1h30m", "every 5400s"],
    ["every 2 hours", "every 7200s"],
    ["90s", "every 90s"],
    ["EVERY 1 day", "every 86400s"],
    ["cron 0 9 * * 1-5", "cron 0 9 * * 1-5"],
    ["0 9 * * MON", "cron 0 9 * * MON"],
    ["*/10 * * * * *", "cron */10 * * * * *"],
    ["@daily", "cron @daily"],
    ["at 2030-05-01T09:00:00Z", "at 2030-05-01T09:00:00.000Z"],
    ["2030-05-01T09:00:00+02:00", "at 2030-05-01T07:00:00.000Z"],
    ["in 20 minutes", "at 2026-01-15T12:20:00.000Z"],
    ["at +20m", "at 2026-01-15T12:20:00.000Z"],
  ];
  // design: 004.26
  for (const [written, kept] of right)
    test(`"${written}" is stored as "${kept}"`, () => assert.equal(read(written), kept));

  test("shows an interval in the largest units, which are read as the same interval", () => {
    const shown = (seconds: number) => readableText(`every ${seconds}s`);
    assert.deepEqual([1, 90, 3_600, 5_400, 90_061, 604_800].map(shown), [
      "every 1s",
      "every 1m30s",
      "every 1h",
      "every 1h30m",
      "every 1d1h1m1s",
      "every 7d",
    ]);
    for (const seconds of [1.5, 61, 86_399]) assert.equal(read(shown(seconds)), `every ${seconds}s`);
    assert.equal(readableText("cron 0 9 * * 1-5"), "cron 0 9 * * 1-5");
  });

  test("a time without an offset is in the job's time zone", () => {
    assert.equal(read("at 2026-07-01 09:00", "Europe/Berlin"), "at 2026-07-01T07:00:00.000Z");
    assert.equal(read("at 2026-12-01T09:00:30", "America/New_York"), "at 2026-12-01T14:00:30.000Z");
  });

  test("a time without an offset does not depend on the time zone of the process", (context) => {
    const { TZ } = process.env;
    context.after(() => {
      if (TZ === undefined) delete process.env["TZ"];
      else process.env["TZ"] = TZ;
    });
    process.env["TZ"] = "Europe/Berlin";
    // Skipped, and occurring twice, on the clocks of the process.
    assert.equal(read("at 2026-03-29T02:30:15.250"), "at 2026-03-29T02:30:15.250Z");
    assert.equal(read("at 2026-10-25T02:30"), "at 2026-10-25T02:30:00.000Z");
    assert.equal(read("at 2026-03-29T02:30", "America/New_York"), "at 2026-03-29T06:30:00.000Z");
  });

  const wrong = [
    "",
    "soon",
    "every",
    "every 0s",
    "every 400d",
    "cron 61 * * * *",
    "1 2 3",
    "cron ? * * * *",
    "at noon",
    "at 2026-13-01T09:00",
    "at 2026-12-01T25:00",
  ];
  for (const written of wrong) {
    test(`"${written}" is refused with the field's name and an example`, () => {
      assert.throws(
        () => read(written),
        (error) => error instanceof InvalidScheduleError && /^schedule: .*(?:every 30m|right ones)/.test(error.message),
      );
    });
  }

  test("refuses a past time, a pattern without occurrences and an unknown time zone", () => {
    assert.throws(() => read("at 2020-01-01T00:00:00Z"), /schedule: 2020-01-01T00:00:00.000Z is in the past/);
    assert.throws(() => read("cron 0 0 30 2 *"), /never occurs/);
    assert.throws(() => read("every 5m", "Mars/Olympus"), /^InvalidScheduleError: time_zone: "Mars\/Olympus"/);
  });

  test("refuses a day that the calendar does not have, and a time after the year 9999", () => {
    for (const date of ["2031-02-29", "2030-02-30T09:00", "2030-04-31T09:00+02:00"]) {
      assert.throws(() => read(`at ${date}`), /^InvalidScheduleError: schedule: 20\d\d-\d\d-\d\d is not a day/);
    }
    assert.equal(read("at 2032-02-29T09:00", "UTC"), "at 2032-02-29T09:00:00.000Z");
    for (const far of ["in 99999999999 weeks", "at +9000000d"]) {
      assert.throws(() => read(far), /^InvalidScheduleError: schedule: the time is after the year 9999/);
    }
  });
});

describe("daylight saving", () => {
  test("an hour that does not exist is replaced by the end of the gap, once", () => {
    assert.deepEqual(dues("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2), [
      "2026-03-29T01:00:00",
      "2026-03-30T00:30:00",
    ]);
    assert.equal(read("at 2026-03-29T02:30", "Europe/Berlin"), "at 2026-03-29T01:30:00.000Z");
  });

  // design: 004.26
  test("a repeated hour runs once where the pattern has fixed hours", () => {
    assert.deepEqual(dues("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2), [
      "2026-10-25T00:30:00",
      "2026-10-26T01:30:00",
    ]);
    assert.deepEqual(dues("30 1,2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 3), [
      "2026-10-24T23:30:00",
      "2026-10-25T00:30:00",
      "2026-10-26T00:30:00",
    ]);
  });

  test("a pattern for every hour runs in both repeated hours and not in the gap", () => {
    assert.deepEqual(dues("0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", 3), [
      "2026-10-25T00:00:00",
      "2026-10-25T01:00:00",
      "2026-10-25T02:00:00",
    ]);
    assert.deepEqual(dues("0 * * * *", "Europe/Berlin", "2026-03-29T00:30:00Z", 2), [
      "2026-03-29T01:00:00",
      "2026-03-29T02:00:00",
    ]);
  });
});

const zones = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/St_Johns"];
const moments = fc.integer({ min: Date.parse("2024-01-01T00:00:00Z"), max: Date.parse("2032-01-01T00:00:00Z") });
const patterns = fc.constantFrom(
  "* * * * *",
  "*/7 * * * *",
  "0 9 * * 1-5",
  "30 2 * * *",
  "15 1,2,3 * * *",
  "0 0 1 * *",
  "*/20 * * * * *",
  "5 30 2 * * SUN",
  "0 0 29 2 *",
);

describe("the next due time", () => {
  test("is after the given time, and the same for every time up to it", () => {
    fc.assert(
      fc.property(
        patterns,
        fc.constantFrom(...zones),
        moments,
        fc.double({ min: 0, max: 1, noNaN: true }),
        (pattern, zone, from, share) => {
          const when: Recurrence = { kind: "cron", pattern };
          const due = nextDue(when, zone, 0, from);
          assert.ok(due !== null && due > from);
          // Patterns have a resolution of one second.
          const between = Math.floor((from + (due - 1_000 - from) * share) / 1_000) * 1_000;
          if (between >= from) assert.equal(nextDue(when, zone, 0, between), due);
        },
      ),
      { numRuns: 300 },
    );
  });

  // design: 002.34
  test("matches the pattern on the wall clock of its time zone, where that hour exists", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...zones),
        moments,
        fc.integer({ min: 4, max: 23 }),
        fc.integer({ min: 0, max: 59 }),
        (zone, from, hour, minute) => {
          const due = nextDue({ kind: "cron", pattern: `${minute} ${hour} * * *` }, zone, 0, from);
          assert.ok(due !== null);
          const localTime = new Intl.DateTimeFormat("en-GB", {
            timeZone: zone,
            hour: "2-digit",
            minute: "2-digit",
            hourCycle: "h23",
          });
          const expected = `${String(hour).padStart(2, "0")}:${String(minute).padStart(2, "0")}`;
          assert.equal(localTime.format(new Date(due)), expected);
          // Once a day, regardless of the day's length.
          assert.ok(due - from <= 25.5 * 3_600_000);
        },
      ),
      { numRuns: 300 },
    );
  });

  test("of `every` stays on its grid after missed times", () => {
    const day = 86_400_000;
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 31 * day }),
        moments,
        fc.integer({ min: 0, max: 90 * day }),
        (everyMs, anchor, later) => {
          const due = nextDue({ kind: "every", everyMs }, "UTC", anchor, anchor + later);
          assert.ok(due !== null && due > anchor + later && due - (anchor + later) <= everyMs);
          assert.equal((due - anchor) % everyMs, 0);
        },
      ),
    );
  });

  test("is unchanged by formatting and parsing", () => {
    const whens = fc.oneof(
      moments.map((at): Recurrence => ({ kind: "at", at })),
      fc.integer({ min: 1_000, max: 1_000_000_000 }).map((everyMs): Recurrence => ({ kind: "every", everyMs })),
      patterns.map((pattern): Recurrence => ({ kind: "cron", pattern })),
    );
    fc.assert(fc.property(whens, (when) => assert.deepEqual(fromText(toText(when)), when)));
  });
});

describe("one due time", () => {
  const due = Date.parse("2026-01-15T12:00:00Z");
  const job = (overrides: Partial<DueJob> = {}): DueJob => ({
    when: { kind: "every", everyMs: 60_000 },
    timeZone: "UTC",
    overlap: "skip",
    missed: "run_once",
    maxRuns: null,
    runs: 0,
    anchor: due - 60_000,
    due,
    now: due + 5,
    busy: false,
    ...overrides,
  });

  test("is followed by a later one when the interval has fractional seconds", () => {
    const when = fromText(read("every 16.1s"));
    const next = nextDue(when, "UTC", now, now) ?? 0;
    assert.deepEqual(decideRun(job({ when, anchor: now, due: next, now: next + 5 })).next, next + 16_100);
  });

  test("becomes a run, followed by the next one", () => {
    assert.deepEqual(decideRun(job()), { outcome: "fired", reason: null, runs: 1, next: due + 60_000 });
  });

  // design: 002.34
  test("is skipped or queued while the previous run has not ended", () => {
    assert.equal(decideRun(job({ busy: true })).outcome, "skipped");
    assert.equal(decideRun(job({ busy: true })).runs, 0);
    assert.equal(decideRun(job({ busy: true, overlap: "queue" })).outcome, "fired");
  });

  test("is not missed when it is late by less than a takeover", () => {
    const late = decideRun(job({ when: { kind: "every", everyMs: 1_000 }, anchor: due - 1_000, now: due + 20_000 }));
    assert.deepEqual([late.outcome, late.next], ["fired", due + 1_000]);
  });

  // design: 002.34, 004.26
  test("is skipped or run once for all after downtime", () => {
    const hours = { now: due + 3 * 3_600_000 + 1 };
    const skipped = decideRun(job({ ...hours, missed: "skip" }));
    const once = decideRun(job(hours));
    assert.deepEqual([skipped.outcome, once.outcome], ["missed", "fired"]);
    assert.deepEqual([skipped.next, once.next], [due + 3 * 3_600_000 + 60_000, due + 3 * 3_600_000 + 60_000]);
    assert.match(once.reason ?? "", /late/);
  });

  // design: 004.26
  test("has no next one when it is the last", () => {
    assert.equal(decideRun(job({ when: { kind: "at", at: due } })).next, null);
    assert.equal(decideRun(job({ maxRuns: 3, runs: 2 })).next, null);
    assert.notEqual(decideRun(job({ maxRuns: 3, runs: 1 })).next, null);
    // A time without a run does not count.
    assert.notEqual(decideRun(job({ maxRuns: 3, runs: 2, busy: true })).next, null);
  });

  test("fails alone when its next one cannot be computed", () => {
    const broken = decideRun(job({ when: { kind: "cron", pattern: "0 9 * * *" }, timeZone: "No/Where" }));
    assert.deepEqual([broken.outcome, broken.next], ["failed", null]);
    assert.match(broken.reason ?? "", /No\/Where/);
    const stuck = decideRun(job({ when: { kind: "every", everyMs: 60_000.000_000_1 } }));
    assert.deepEqual([stuck.outcome, stuck.next], ["failed", null]);
  });
});
