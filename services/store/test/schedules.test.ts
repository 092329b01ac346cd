// Jobs on a real PostgreSQL and a real bus: each due time is one inbox row, or has a reason why not.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import {
  inboxReady,
  scheduleChanged,
  store,
  type InboundMessage,
  type InputOf,
  type Schedule,
} from "@parley/contracts";
import type { Bus } from "@parley/bus";
import { Cleanup } from "@parley/testing";
import type { Client } from "pg";
import { failsWith, openStoreFixture, type StoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;
let core: Bus;
let gateway: Bus;
let sql: Client;

before(async () => {
  fixture = await openStoreFixture(cleanup);
  ({ core, gateway, sql } = fixture);
});
after(() => cleanup[Symbol.asyncDispose]());

type Create = InputOf<typeof store.scheduleCreate>;

function wanted(overrides: Partial<Create> = {}): Create {
  return {
    opId: randomUUID(),
    name: `job ${randomUUID()}`,
    schedule: "every 1h",
    timeZone: "UTC",
    prompt: "say: done",
    target: "own",
    deliverTo: null,
    overlap: "skip",
    missed: "run_once",
    afterRun: "disable",
    maxRuns: null,
    keepRuns: 50,
    enabled: true,
    createdBy: { sessionId: null, turnId: null, trust: "owner" },
    ...overrides,
  };
}

const create = async (overrides: Partial<Create> = {}) =>
  (await gateway.request(store.scheduleCreate, wanted(overrides))).job;
const get = async (id: string) => (await core.request(store.scheduleGet, { id })).job;
const history = async (id: string) => (await core.request(store.scheduleGet, { id, runs: 50 })).runs;
const fire = (due: { id: string; due: string }[], opId: string = randomUUID()) =>
  core.request(store.scheduleFire, { opId, epoch: fixture.epoch, due });

/** Moves the job's next due time into the past, on its own grid. */
async function makeDue(job: Schedule, secondsAgo: number): Promise<{ id: string; due: string }> {
  const due = new Date(Math.floor(Date.now() / 1_000) * 1_000 - secondsAgo * 1_000).toISOString();
  await sql.query(
    `UPDATE parley.schedules SET next_due = $2, anchor = $2::timestamptz - interval '1 day',
       schedule = CASE WHEN schedule LIKE 'at %' THEN 'at ' || $3 ELSE schedule END WHERE id = $1`,
    [job.id, due, due],
  );
  return { id: job.id, due };
}

interface InboxRow {
  external_id: string;
  state: string;
  route: string;
  reply_to: string | null;
  trust: string;
  mode: string;
  parts: string;
}

async function rowsOf(id: string): Promise<InboxRow[]> {
  const { rows } = await sql.query<InboxRow>(
    `SELECT i.external_id, i.state, s.key AS route, i.reply_to, i.trust, i.mode, i.parts FROM parley.inbox i JOIN parley.sessions s ON s.id = i.session_id
     WHERE i.channel = 'internal' AND i.account = 'cron' AND i.external_id LIKE $1 ORDER BY i.external_id`,
    [`cron:${id}:%`],
  );
  return rows;
}

/** Claims and answers the job's input. */
async function work(sessionId: string): Promise<void> {
  const claimed = await core.request(store.turnClaim, {
    opId: randomUUID(),
    epoch: fixture.epoch,
    sessionId,
    knownSeq: 0,
    maxClaims: 5,
  });
  assert.equal(claimed.status, "started");
  await core.request(store.turnFinish, {
    opId: randomUUID(),
    epoch: fixture.epoch,
    turnId: claimed.turn.turnId,
    parts: [],
    model: null,
    unsettled: "",
    outgoing: [],
    finish: { state: "done", exitReason: "end_turn", text: "worked" },
  });
}

async function sessionOf(route: string): Promise<string> {
  const { rows } = await sql.query<{ id: string }>("SELECT id FROM parley.sessions WHERE key = $1", [route]);
  assert.ok(rows[0] !== undefined, `no session ${route}`);
  return rows[0].id;
}

function inbound(overrides: Partial<InboundMessage> = {}): InboundMessage {
  return {
    channel: "telegram",
    account: "main",
    externalId: randomUUID(),
    conversation: "42",
    contact: { id: "7" },
    role: "owner",
    origin: "user",
    parts: [{ type: "text", text: "hello" }],
    replyTo: { channel: "telegram", account: "main", conversation: "42" },
    ...overrides,
  };
}

describe("a job", () => {
  test("is stored in normalized form with its first due time, and found by id and by name", async () => {
    const job = await create({ schedule: "0 9 * * 1-5", timeZone: "Europe/Berlin", name: "morning" });
    assert.equal(job.schedule, "cron 0 9 * * 1-5");
    assert.ok(job.nextDue !== null && Date.parse(job.nextDue) > Date.now());
    assert.deepEqual(await get(job.id), job);
    assert.deepEqual(await get("morning"), job);
    await create({ name: "morning" });
    assert.equal(await get("morning"), null, "an ambiguous name finds no job");
  });

  test("is created once per operation id", async () => {
    const changes = await nextChange();
    const input = wanted({ id: "asked-twice" });
    const first = await core.request(store.scheduleCreate, input);
    const again = await core.request(store.scheduleCreate, input);
    const other = await core.request(store.scheduleCreate, { ...input, opId: randomUUID(), prompt: "another" });
    assert.deepEqual([first.created, again.created, other.created], [true, true, false]);
    assert.equal(other.job.prompt, input.prompt);
    await changes.heard;
  });

  test("is refused with the field's name when its schedule is invalid", async () => {
    await assert.rejects(create({ schedule: "every now and then" }), failsWith("INVALID_INPUT", /^schedule: /));
    await assert.rejects(create({ timeZone: "Berlin" }), failsWith("INVALID_INPUT", /^time_zone: /));
  });

  test("counts from now after a new schedule or being enabled, and is never due while paused", async () => {
    const job = await create();
    const paused = await gateway.request(store.scheduleUpdate, {
      opId: randomUUID(),
      id: job.id,
      change: { enabled: false },
    });
    assert.deepEqual([paused.job.enabled, paused.job.nextDue], [false, null]);
    const renamed = await gateway.request(store.scheduleUpdate, {
      opId: randomUUID(),
      id: job.id,
      change: { name: "new\0name" },
    });
    assert.deepEqual([renamed.job.name, renamed.job.nextDue], ["new name", null]);
    const again = await gateway.request(store.scheduleUpdate, {
      opId: randomUUID(),
      id: job.id,
      change: { enabled: true, schedule: "every 10s" },
    });
    const inMs = Date.parse(again.job.nextDue ?? "") - Date.now();
    assert.ok(inMs > 5_000 && inMs <= 10_000, `due in ${inMs} ms`);
    await assert.rejects(
      gateway.request(store.scheduleUpdate, { opId: randomUUID(), id: "no-such-job", change: {} }),
      failsWith("NOT_FOUND"),
    );
  });

  test("is listed in pages that fit, and not after its removal", async () => {
    const prompt = "x".repeat(20_000);
    const ids = await Promise.all(Array.from({ length: 20 }, async () => (await create({ prompt })).id));
    const seen: string[] = [];
    for (let after: string | undefined; ;) {
      const page = await core.request(store.scheduleList, {
        all: false,
        limit: 100,
        ...(after === undefined ? {} : { after }),
      });
      seen.push(...page.jobs.map(({ id }) => id));
      after = page.jobs.at(-1)?.id;
      if (!page.more) break;
    }
    assert.equal(new Set(seen).size, seen.length);
    assert.ok(ids.every((id) => seen.includes(id)));
    const [first = ""] = ids;
    assert.deepEqual(await gateway.request(store.scheduleRemove, { opId: randomUUID(), id: first }), { removed: true });
    assert.deepEqual(await gateway.request(store.scheduleRemove, { opId: randomUUID(), id: first }), {
      removed: false,
    });
    assert.equal(await get(first), null);
  });
});

/** Resolves with the next hint that jobs have changed. */
async function nextChange(): Promise<{ heard: Promise<void> }> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const subscription = core.subscribe(scheduleChanged, {}, () => {
    subscription.close();
    resolve();
  });
  await core.flush();
  return { heard: promise };
}

describe("a due time", () => {
  // design: 000.31, 004.12, 004.30c
  test("becomes one row, also with repeated and concurrent requests", async () => {
    const job = await create();
    const due = await makeDue(job, 1);
    const opId = randomUUID();
    const fires = await Promise.all([fire([due]), fire([due]), fire([due], opId), fire([due], opId), fire([due, due])]);
    assert.ok(fires.every((each) => each.fired + each.gone > 0));
    const rows = await rowsOf(job.id);
    assert.deepEqual(
      rows.map((row) => [row.external_id, row.route, row.trust, row.mode, row.reply_to]),
      [[`cron:${job.id}:${due.due}`, `cron:${job.id}`, "cron", "queue", null]],
    );
    const text = (JSON.parse(rows[0]?.parts ?? "[]") as { text: string }[])[0]?.text ?? "";
    assert.match(text, /^\[scheduled job .*\]\n\nNobody wrote this message.* without asking questions.*\n\nsay: done$/);
    const now = await get(job.id);
    assert.deepEqual([now?.runs, now?.lastDue], [1, due.due]);
    assert.ok(Date.parse(now?.nextDue ?? "") > Date.now());
  });

  // design: 001.33
  test("goes to a session of the job's profile", async () => {
    const job = await create({ profile: "worker" });
    await fire([await makeDue(job, 1)]);
    const route = `cron:${job.id}@worker`;
    assert.deepEqual(
      (await rowsOf(job.id)).map((row) => row.route),
      [route],
    );
    const { session } = await core.request(store.sessionView, {
      epoch: fixture.epoch,
      sessionId: await sessionOf(route),
      knownSeq: 0,
    });
    assert.equal(session.profile, "worker");
    await assert.rejects(create({ profile: "worker", target: "main" }), /runs in its own thread/);
  });

  test("creates nothing when it is in the future or has changed", async () => {
    const job = await create();
    assert.deepEqual(await fire([{ id: job.id, due: job.nextDue ?? "" }]), {
      fired: 0,
      skipped: 0,
      missed: 0,
      failed: 0,
      gone: 1,
    });
    const due = await makeDue(job, 1);
    await gateway.request(store.scheduleUpdate, { opId: randomUUID(), id: job.id, change: { schedule: "every 2h" } });
    assert.equal((await fire([due])).gone, 1);
    assert.deepEqual(await rowsOf(job.id), []);
  });

  test("is refused to a stale leader", async () => {
    const job = await create();
    const due = await makeDue(job, 1);
    const old = fixture.epoch;
    await fixture.takeOver();
    await assert.rejects(
      core.request(store.scheduleFire, { opId: randomUUID(), epoch: old, due: [due] }),
      failsWith("STALE_EPOCH"),
    );
    assert.equal((await fire([due])).fired, 1);
  });

  test("is listed, with the next due times", async () => {
    const job = await create();
    const due = await makeDue(job, 5);
    const soon = await create({ schedule: "at +30s" });
    const look = await core.request(store.scheduleDue, { limit: 500, horizonMs: 60_000 });
    assert.ok(look.due.some((each) => each.id === due.id && each.due === due.due));
    assert.ok(look.upcoming.includes(soon.nextDue ?? ""));
    assert.ok(look.upcoming.every((moment) => Date.parse(moment) <= Date.parse(look.now) + 60_000));
    await fire([due]);
  });

  test("wakes its session", async () => {
    const job = await create();
    const woken = Promise.withResolvers<string>();
    const hints = core.subscribe(inboxReady, {}, ({ sessionId }) => woken.resolve(sessionId));
    await core.flush();
    await fire([await makeDue(job, 1)]);
    assert.equal(await woken.promise, await sessionOf(`cron:${job.id}`));
    hints.close();
  });

  test("is skipped with a reason while the previous run has not ended, or queued with `queue`", async () => {
    const skipping = await create();
    const queueing = await create({ overlap: "queue" });
    for (const job of [skipping, queueing]) {
      await fire([await makeDue(job, 3)]);
      await fire([await makeDue(job, 2)]);
    }
    assert.equal((await rowsOf(skipping.id)).length, 1);
    assert.equal((await rowsOf(queueing.id)).length, 2);
    assert.deepEqual(
      (await history(skipping.id)).map(({ outcome, state }) => [outcome, state]),
      [
        ["skipped", null],
        ["fired", "queued"],
      ],
    );
    await work(await sessionOf(`cron:${skipping.id}`));
    assert.equal((await fire([await makeDue(skipping, 1)])).fired, 1);
    const [, , first] = await history(skipping.id);
    assert.deepEqual([first?.state, first?.turn?.exitReason, first?.turn?.text], ["done", "end_turn", "worked"]);
  });

  test("is skipped or run once for all when it was missed", async () => {
    const [leaving, once] = [await create({ missed: "skip" }), await create()];
    const dues = [await makeDue(leaving, 7_200), await makeDue(once, 7_200)];
    assert.deepEqual(await fire(dues), { fired: 1, skipped: 0, missed: 1, failed: 0, gone: 0 });
    assert.equal((await rowsOf(leaving.id)).length, 0);
    assert.equal((await rowsOf(once.id)).length, 1);
    for (const job of [leaving, once]) assert.ok(Date.parse((await get(job.id))?.nextDue ?? "") > Date.now());
  });

  test("ends the job when it is the last one: disabled with its history, or deleted", async () => {
    const kept = await create({ schedule: "at +10m" });
    const forgotten = await create({ schedule: "at +10m", afterRun: "delete" });
    const twice = await create({ maxRuns: 1 });
    await fire([await makeDue(kept, 1), await makeDue(forgotten, 1), await makeDue(twice, 1)]);
    assert.equal(await get(forgotten.id), null);
    assert.equal((await rowsOf(forgotten.id)).length, 1);
    for (const job of [kept, twice]) {
      const now = await get(job.id);
      assert.deepEqual([now?.enabled, now?.nextDue, now?.lastRun?.outcome], [false, null, "fired"]);
    }
  });

  test("has none after it when the limit of runs is lowered to what has already run", async () => {
    const job = await create({ overlap: "queue" });
    for (const seconds of [9, 8]) await fire([await makeDue(job, seconds)]);
    const lowered = { opId: randomUUID(), id: job.id, change: { maxRuns: 2 } };
    const { job: ended } = await gateway.request(store.scheduleUpdate, lowered);
    assert.deepEqual([ended.enabled, ended.nextDue, ended.maxRuns], [false, null, 2]);
    const resumed = { opId: randomUUID(), id: job.id, change: { enabled: true } };
    const { job: again } = await gateway.request(store.scheduleUpdate, resumed);
    assert.deepEqual([again.enabled, again.runs], [true, 0]);
  });

  test("fails alone with its reason when the job is invalid", async () => {
    const [broken, sound] = [await create(), await create()];
    await sql.query("UPDATE parley.schedules SET schedule = 'cron 0 9 * * *', time_zone = 'No/Where' WHERE id = $1", [
      broken.id,
    ]);
    const counts = await fire([await makeDue(broken, 1), await makeDue(sound, 1)]);
    assert.deepEqual([counts.fired, counts.failed], [1, 1]);
    const [run] = await history(broken.id);
    assert.match(run?.reason ?? "", /No\/Where/);
    assert.equal((await get(broken.id))?.enabled, false);
  });

  test("is kept in the history according to the job's limit", async () => {
    const job = await create({ keepRuns: 3, overlap: "queue" });
    for (const seconds of [9, 8, 7, 6, 5]) await fire([await makeDue(job, seconds)]);
    assert.equal((await history(job.id)).length, 3);
    assert.equal((await rowsOf(job.id)).length, 5);
  });

  // design: switch.16
  test("is answered at the owner's most recent address unless the job has one", async () => {
    const deliverTo = { channel: "irc", account: "net", conversation: "#team" };
    await gateway.request(store.inboxPut, { message: inbound(), sessionKey: "main" });
    const [open, told] = [await create({ target: "main" }), await create({ target: "main", deliverTo })];
    await fire([await makeDue(open, 1), await makeDue(told, 1)]);
    const [first] = await rowsOf(open.id);
    const [second] = await rowsOf(told.id);
    assert.deepEqual([first?.route, JSON.parse(first?.reply_to ?? "")], ["main", inbound().replyTo]);
    assert.deepEqual([second?.route, JSON.parse(second?.reply_to ?? "")], ["main", deliverTo]);
  });

  test("is answered in the job's own thread, and nowhere if configured so", async () => {
    await gateway.request(store.inboxPut, { message: inbound(), sessionKey: "main" });
    const [open, silent] = [await create(), await create({ deliverTo: "nowhere" })];
    assert.deepEqual([(await get(open.id))?.deliverTo, (await get(silent.id))?.deliverTo], [null, "nowhere"]);
    await fire([await makeDue(open, 1), await makeDue(silent, 1)]);
    const [first] = await rowsOf(open.id);
    const [second] = await rowsOf(silent.id);
    assert.deepEqual([first?.route, JSON.parse(first?.reply_to ?? "")], [`cron:${open.id}`, inbound().replyTo]);
    assert.deepEqual([second?.route, second?.reply_to], [`cron:${silent.id}`, null]);
  });

  test("of a thousand concurrent jobs is one row each, numbered without gaps in a shared thread", async () => {
    const { id } = await create();
    const count = 1_000;
    await sql.query(
      `INSERT INTO parley.schedules (id, name, schedule, anchor, time_zone, prompt, target, overlap, missed, after_run, keep_runs, enabled, next_due, created_by)
       SELECT 'many-' || n, name, schedule, anchor, time_zone, prompt, CASE WHEN n % 2 = 0 THEN 'main' ELSE 'own' END, overlap, missed, after_run,
              keep_runs, true, date_trunc('second', now()) - interval '1 second', created_by
       FROM parley.schedules, generate_series(1, $2::int) AS n WHERE id = $1`,
      [id, count],
    );
    for (;;) {
      const { due } = await core.request(store.scheduleDue, { limit: 500, horizonMs: 0 });
      const [first] = due;
      if (first === undefined) break;
      await fire(due);
    }
    const { rows } = await sql.query<{ count: number; jobs: number }>(
      `SELECT count(*)::int AS count, count(DISTINCT external_id)::int AS jobs FROM parley.inbox WHERE account = 'cron' AND external_id LIKE 'cron:many-%'`,
    );
    assert.deepEqual(rows[0], { count, jobs: count });
    const gaps = await sql.query(
      `SELECT FROM parley.inbox i JOIN parley.sessions s ON s.id = i.session_id WHERE s.key = 'main' OR s.key LIKE 'cron:many-%'
       GROUP BY s.id HAVING max(i.seq) - min(i.seq) + 1 <> count(*) OR max(i.seq) <> s.inbox_seq`,
    );
    assert.equal(gaps.rowCount, 0);
  });
});

describe("a manual run", () => {
  test("runs once per request and does not change the schedule", async () => {
    const job = await create();
    const opId = randomUUID();
    const first = await gateway.request(store.scheduleRun, { opId, id: job.id });
    const again = await gateway.request(store.scheduleRun, { opId, id: job.id });
    assert.deepEqual(again, first);
    const now = await get(job.id);
    assert.deepEqual([now?.nextDue, now?.runs, now?.lastRun?.manual], [job.nextDue, 0, true]);
    assert.equal((await rowsOf(job.id)).length, 1);
    await assert.rejects(
      gateway.request(store.scheduleRun, { opId: randomUUID(), id: "none" }),
      failsWith("NOT_FOUND"),
    );
  });
});

describe("a heartbeat", () => {
  const beat = (slot: string, skipWhenBusy = true) =>
    core.request(store.heartbeatFire, {
      opId: randomUUID(),
      epoch: fixture.epoch,
      slot,
      text: "look after things",
      skipWhenBusy,
    });

  // design: 000.24, 004.3, 004.12, 004.39
  test("is one row per slot, and skipped while the thread is busy", async () => {
    assert.equal((await beat("busy")).outcome, "busy");
    const main = await sessionOf("main");
    await sql.query("UPDATE parley.inbox SET state = 'done' WHERE session_id = $1", [main]);
    const [one, two] = await Promise.all([beat("a"), beat("a")]);
    assert.deepEqual([one.outcome, two.outcome].sort(), ["fired", "known"]);
    assert.equal(one.inboxId, two.inboxId);
    assert.equal((await beat("b")).outcome, "busy");
    assert.equal((await beat("b", false)).outcome, "fired");
    const { rows } = await sql.query<{ trust: string; reply_to: string | null; session_id: string }>(
      "SELECT trust, reply_to, session_id FROM parley.inbox WHERE account = 'heartbeat'",
    );
    assert.equal(rows.length, 2);
    for (const row of rows) {
      assert.deepEqual([row.trust, row.session_id], ["heartbeat", main]);
      assert.deepEqual(JSON.parse(row.reply_to ?? ""), inbound().replyTo);
    }
  });
});
