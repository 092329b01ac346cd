// `parley cron` and `parley heartbeat` against a real cluster.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { pollUntil } from "@parley/testing/until";
import type { Schedule, ScheduleRun } from "@parley/contracts";
import { Cleanup, startTelegramPeer, startTestCluster, type TelegramPeer, type TestCluster } from "@parley/testing";

import { isFinished, jobsTable, nextText } from "../src/tables/lists.ts";
import { runParley } from "./support/parley.ts";

const cleanup = new Cleanup();
let cluster: TestCluster;
let peer: TelegramPeer;

before(async () => {
  peer = await startTelegramPeer();
  cleanup.add(() => peer.close());
  cluster = await startTestCluster(cleanup, {
    processes: [],
    settings: `[channels.telegram.main]\ntoken_env = "PARLEY_CHANNEL_TELEGRAM"\napi_root = "${peer.url}"\nowners = ["42"]\n`,
    env: { "channel-gateway": { PARLEY_CHANNEL_TELEGRAM: peer.token } },
  });
});
after(() => cleanup[Symbol.asyncDispose]());

const run = (...args: string[]) => runParley(cluster.home, args);
const cron = (...args: string[]) => run("cron", ...args);

test("adds, lists, pauses, runs, shows the history of and removes a job by its name", async () => {
  assert.match((await cron("list")).stdout, /There are no jobs yet/);
  const added = await cron(
    "add",
    "0 9 * * 1-5",
    "say: good morning",
    "--zone",
    "Europe/Berlin",
    "--name",
    "morning",
    "--target",
    "own",
  );
  assert.equal(added.code, 0, added.stderr);
  assert.match(added.stdout, /^job-\w+: cron 0 9 \* \* 1-5 \(Europe\/Berlin\), next \d{4}-.* \(in /);
  assert.match((await cron("list")).stdout, /morning +0 9 \* \* 1-5 Europe\/Berlin +\d{4}-.* own +0 +-/);

  assert.match((await cron("pause", "morning")).stdout, /is paused/);
  assert.doesNotMatch((await cron("list", "--active")).stdout, /morning/);
  assert.match((await cron("pause", "morning", "--off")).stdout, /is resumed, next/);

  assert.match((await cron("history", "morning")).stdout, /not been due yet/);
  assert.match((await cron("run", "morning")).stdout, /is queued/);
  await pollUntil(async () => {
    const { runs } = JSON.parse((await cron("history", "morning", "--json")).stdout) as { runs: ScheduleRun[] };
    return runs[0]?.turn?.exitReason === "end_turn";
  }, "the end of the run");
  assert.match((await cron("history", "morning")).stdout, /end_turn \(by hand\) +good morning/);
  assert.match((await cron("remove", "morning")).stdout, /Removed job-\w+ "morning"/);
  const gone = await cron("history", "morning");
  assert.notEqual(gone.code, 0);
  assert.match(gone.stderr, /there is no job "morning"/);
});

test("sends an answer to the configured place, to none, or to the owner's last place", async () => {
  const kept = async (...args: string[]) => {
    const { code, stdout, stderr } = await cron("add", "0 9 * * *", "say: hello", "--json", ...args);
    assert.equal(code, 0, stderr);
    const { job } = JSON.parse(stdout) as { job: Schedule };
    await cron("remove", job.id);
    return job.deliverTo;
  };
  assert.equal(await kept(), null);
  assert.equal(await kept("--deliver", "nowhere"), "nowhere");
  const address = { channel: "telegram", account: "main", conversation: "-100" };
  assert.deepEqual(await kept("--deliver", "telegram:main:-100"), address);
  const unheard = await cron("add", "0 9 * * *", "say: hello", "--deliver", "irc:net:#team");
  assert.notEqual(unheard.code, 0);
  assert.match(unheard.stderr, /account irc:net is not configured; add .* \[channels\.irc\.net\]/);
});

test("reports invalid input and stores nothing", async () => {
  const cases: [string[], RegExp][] = [
    [["add", "sometimes", "x"], /schedule: "sometimes" is not a valid schedule; valid examples/],
    [["add", "every 1h"], /A job needs a schedule and a prompt/],
    [["add", "every 1h", "x", "--deliver", "bob"], /--deliver: "bob" is not an address/],
    [["add", "every 1h", "x", "--max-runs", "none"], /--max-runs: "none" is not a number/],
    [["pause"], /Name a job/],
  ];
  for (const [args, words] of cases) {
    const { code, stderr } = await cron(...args);
    assert.notEqual(code, 0, args.join(" "));
    assert.match(stderr, words);
  }
  const { jobs } = JSON.parse((await cron("list", "--json")).stdout) as { jobs: Schedule[] };
  assert.deepEqual(jobs, []);
});

test("reports that HEARTBEAT.md has no tasks when a heartbeat is run manually", async () => {
  assert.match((await run("heartbeat", "run")).stdout, /HEARTBEAT\.md contains no tasks/);
});

test("prints the time until a job's next run, or never or off", () => {
  const job = { nextDue: "2026-01-15T12:00:00.000Z", enabled: true } as Schedule;
  assert.match(nextText(job, Date.parse("2026-01-15T09:00:00Z")), /\(in 3h\)$/);
  assert.equal(nextText({ ...job, schedule: "every 1h", nextDue: null, lastDue: null }, 0), "never");
  assert.equal(nextText({ ...job, schedule: "every 1h", nextDue: null, lastDue: null, enabled: false }, 0), "off");
});

test("calls a job finished whose only time or number of runs has passed, and leaves it out of the list", () => {
  const none = {
    nextDue: null,
    lastDue: "2026-01-15T12:00:00.000Z",
    maxRuns: null,
    runs: 1,
    enabled: false,
  } as Schedule;
  const once: Schedule = { ...none, schedule: "at 2026-01-15T12:00:00.000Z" };
  assert.equal(nextText(once, 0), "finished");
  assert.equal(nextText({ ...none, schedule: "every 1h", maxRuns: 1 }, 0), "finished");
  assert.equal(nextText({ ...none, schedule: "every 1h" }, 0), "off");
  assert.equal(isFinished({ ...once, nextDue: "2027-01-15T12:00:00.000Z" }), false);
  assert.equal(
    jobsTable([], (_style, text) => text, 0, 1),
    "There are no jobs to come. 1 finished job is not listed; --all lists them.",
  );
});
