// The format of jobs and runs for the model.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Schedule } from "@parley/contracts";
import { formatJob, relative, formatRun, timeText } from "../../src/schedule/format-job.ts";

const now = Date.parse("2026-01-15T12:00:00Z");

test("formats a relative time in at most two units", () => {
  const cases: [number, string][] = [
    [5, "in 5 s"],
    [-90, "1 min ago"],
    [3_600 * 3 + 60 * 20 + 5, "in 3 h 20 min"],
    [86_400 * 2 + 60, "in 2 d 1 min"],
    [-86_400, "1 d ago"],
  ];
  for (const [seconds, words] of cases) assert.equal(relative(now + seconds * 1_000, now), words);
});

test("formats a time in the job's time zone", () => {
  assert.equal(
    timeText("2026-01-15T23:30:00.000Z", "Asia/Tokyo", now),
    "Fri 2026-01-16 08:30:00 Asia/Tokyo (in 11 h 30 min)",
  );
});

const job: Schedule = {
  id: "job-1",
  name: "morning",
  schedule: "cron 0 9 * * *",
  timeZone: "Europe/Berlin",
  prompt: "Say\ngood morning",
  target: "own",
  deliverTo: { channel: "telegram", account: "default", conversation: "42" },
  overlap: "skip",
  missed: "run_once",
  afterRun: "disable",
  maxRuns: 3,
  keepRuns: 50,
  enabled: true,
  createdBy: { sessionId: null, turnId: null, trust: "owner" },
  runs: 1,
  nextDue: "2026-01-16T08:00:00.000Z",
  lastDue: null,
  lastRun: null,
  createdAt: "2026-01-15T00:00:00.000Z",
  updatedAt: "2026-01-15T00:00:00.000Z",
};

test("formats a job with its next run, delivery, prompt and number of runs", () => {
  const text = formatJob(job, now);
  assert.match(
    text,
    /^job-1 "morning": cron 0 9 \* \* \* \(Europe\/Berlin\); next Fri 2026-01-16 09:00:00 Europe\/Berlin \(in 20 h\)/,
  );
  assert.match(text, /cron:job-1, answers go to telegram:default:42; 1 of 3 runs/);
  assert.match(formatJob({ ...job, deliverTo: "nowhere" }, now), /cron:job-1, answers go to nobody; /);
  assert.match(text, /prompt: Say good morning$/);
  assert.match(formatJob({ ...job, enabled: false, nextDue: null }, now), /disabled or finished/);
});

test("formats a run with its outcome", () => {
  const run = {
    due: "2026-01-15T08:00:00.000Z",
    at: "2026-01-15T08:00:00.100Z",
    manual: false,
    reason: null,
    inboxId: "1",
  };
  const said = (more: object) => formatRun({ ...run, outcome: "fired", state: null, turn: null, ...more }, "UTC", now);
  assert.match(said({ state: "queued" }), /4 h ago\), fired, queued$/);
  assert.match(said({ state: "claimed", turn: { turnId: "1", exitReason: null, text: null } }), /fired, running$/);
  assert.match(
    said({ state: "done", turn: { turnId: "1", exitReason: "end_turn", text: "hi" } }),
    /fired, end_turn, "hi"$/,
  );
  assert.match(said({ outcome: "skipped", reason: "busy" }), /skipped, busy$/);
  assert.match(said({ manual: true, state: "queued" }), /started manually, queued$/);
});
