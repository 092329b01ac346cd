// Jobs of people whom the owner let in, on a real PostgreSQL: whose they are, what they run with, and when they stop.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { store, type InputOf } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { openDatabase } from "../src/db/database.ts";
import { deleteExpiredSessions } from "../src/retention/sessions.ts";
import { failsWith, inbound, openStoreFixture, type StoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;

before(async () => {
  fixture = await openStoreFixture(cleanup);
});
after(() => cleanup[Symbol.asyncDispose]());

const place = { channel: "telegram", account: "main" };
const person = (contactId: string) => ({ ...place, contactId });

/** A turn that answers messages of a user in their chat, with the session and its key. */
async function turnOf(contactId: string, overrides: { key?: string; tainted?: boolean } = {}) {
  const key = overrides.key ?? `telegram:main:${contactId}`;
  const { sessionId } = await fixture.put(key, {
    ...place,
    conversation: contactId,
    contact: { id: contactId, name: `Person ${contactId}` },
    role: "user",
    direct: true,
    externalId: randomUUID(),
    replyTo: { ...place, conversation: contactId },
  });
  const { turnId, trust } = await fixture.started(sessionId);
  assert.equal(trust, "user");
  return { sessionId, turnId, key };
}

async function finish(turnId: string): Promise<void> {
  await fixture.core.request(store.turnFinish, {
    ...fixture.fenced(),
    turnId,
    parts: [],
    model: null,
    unsettled: "",
    outgoing: [],
    finish: { state: "done", exitReason: "end_turn", text: "ok" },
  });
}

type Create = InputOf<typeof store.scheduleCreate>;

function wanted({ turnId, sessionId }: { turnId: string; sessionId: string }, overrides: Partial<Create> = {}): Create {
  return {
    opId: randomUUID(),
    name: "tea",
    schedule: "every 1h",
    timeZone: "UTC",
    prompt: "say: the tea",
    target: "main",
    profile: null,
    deliverTo: { channel: "irc", account: "net", conversation: "#elsewhere" },
    overlap: "skip",
    missed: "run_once",
    afterRun: "disable",
    maxRuns: null,
    keepRuns: 50,
    enabled: true,
    createdBy: { sessionId, turnId, trust: "user" },
    ...overrides,
  };
}

const create = async (...args: Parameters<typeof wanted>) =>
  (await fixture.core.request(store.scheduleCreate, wanted(...args))).job;
const get = async (id: string) => await fixture.core.request(store.scheduleGet, { id, runs: 10 });

async function fire(id: string, admission?: "listed" | "if_paired" | "never") {
  await fixture.sql.query(
    "UPDATE parley.schedules SET next_due = date_trunc('milliseconds', clock_timestamp()) - interval '1 second' WHERE id = $1",
    [id],
  );
  const { due } = await fixture.core.request(store.scheduleDue, { limit: 500, horizonMs: 0 });
  const mine = due.filter((each) => each.id === id).map((each) => ({ id, due: each.due, admission }));
  return fixture.core.request(store.scheduleFire, { ...fixture.fenced(), due: mine });
}

// design: 004.26b
test("runs with the person's rights where they created it, regardless of the request", async () => {
  const turn = await turnOf("101");
  const job = await create(turn, { tainted: true });
  assert.deepEqual(job.person, { ...person("101"), name: "Person 101", direct: true });
  assert.deepEqual([job.target, job.deliverTo], ["own", { ...place, conversation: "101" }]);
  await finish(turn.turnId);
  assert.equal((await fire(job.id, "listed")).fired, 1);
  const claimed = await fixture.started(turn.sessionId);
  assert.deepEqual(
    [claimed.trust, claimed.root.trust, claimed.sessionKey, claimed.replyTo],
    ["user", "user", turn.key, { ...place, conversation: "101" }],
  );
  const { rows } = await fixture.sql.query<{ sender: string }>("SELECT sender FROM parley.inbox WHERE turn_id = $1", [
    claimed.turnId,
  ]);
  assert.deepEqual(JSON.parse(rows[0]?.sender ?? ""), {
    ...place,
    conversation: "101",
    contact: { id: "101", name: "Person 101" },
    role: "user",
    origin: "cron",
    direct: true,
    tainted: true,
  });
  // A job cannot create further jobs, with the person's rights either.
  await assert.rejects(
    create({ turnId: claimed.turnId, sessionId: turn.sessionId }),
    failsWith("INVALID_INPUT", /^a job may list and remove jobs/),
  );
  await finish(claimed.turnId);
});

test("answers with the profile of the conversation when its session was deleted", async () => {
  const message = { ...inbound(), conversation: "151", contact: { id: "151" }, role: "user" as const };
  const sessionKey = "telegram:main:151";
  const { sessionId } = await fixture.gateway.request(store.inboxPut, { message, sessionKey, profile: "shop" });
  const { turnId } = await fixture.started(sessionId);
  const job = await create({ turnId, sessionId });
  assert.equal(job.profile, undefined, "nobody chose it for the job");
  await finish(turnId);

  const settings = { retention_days: 1, call_retention_days: 0, max_sessions: 0, max_messages: 0 };
  await fixture.sql.query(
    "UPDATE parley.sessions SET status = 'archived', updated_at = now() - interval '2 days' WHERE id = $1",
    [sessionId],
  );
  await fixture.sql.query("UPDATE parley.outbox SET state = 'sent' WHERE turn_id = $1", [turnId]);
  const database = openDatabase(fixture.stack.postgres.storeUrl, 1, () => undefined);
  try {
    assert.equal((await deleteExpiredSessions(database, settings)).sessions, 1);
  } finally {
    await database.pool.end();
  }
  assert.equal((await fire(job.id, "listed")).fired, 1);
  const { session } = await fixture.gateway.request(store.sessionGet, { key: sessionKey });
  assert.notEqual(session?.sessionId, sessionId);
  assert.equal(session?.profile, "shop");
});

test("is seen and changed by its person and by the owner alone", async () => {
  const mine = await turnOf("111");
  const other = await turnOf("112");
  const job = await create(mine, { name: "mine" });
  const others = { id: job.id, personOfTurn: other.turnId };
  const change = { opId: randomUUID(), change: { prompt: "say: changed" } };
  assert.equal((await fixture.core.request(store.scheduleGet, others)).job, null);
  assert.equal((await fixture.core.request(store.scheduleGet, { id: "mine", personOfTurn: other.turnId })).job, null);
  const listOf = async (personOfTurn?: string) =>
    (
      await fixture.core.request(store.scheduleList, {
        all: true,
        limit: 100,
        ...(personOfTurn === undefined ? {} : { personOfTurn }),
      })
    ).jobs.map(({ id }) => id);
  assert.deepEqual([await listOf(other.turnId), await listOf(mine.turnId)], [[], [job.id]]);
  assert.ok((await listOf()).includes(job.id));
  await assert.rejects(fixture.core.request(store.scheduleUpdate, { ...change, ...others }), failsWith("NOT_FOUND"));
  await assert.rejects(
    fixture.core.request(store.scheduleRun, { opId: randomUUID(), admission: "listed", ...others }),
    failsWith("NOT_FOUND"),
  );
  assert.equal((await fixture.core.request(store.scheduleRemove, { opId: randomUUID(), ...others })).removed, false);

  const own = { id: job.id, personOfTurn: mine.turnId };
  await assert.rejects(
    fixture.core.request(store.scheduleUpdate, { opId: randomUUID(), ...own, change: { target: "main" } }),
    failsWith("INVALID_INPUT", /^target: the job of a person runs and answers in the conversation/),
  );
  await fixture.core.request(store.scheduleUpdate, { ...change, ...own });
  // The owner, without a person, changes and removes every job.
  const changed = await fixture.core.request(store.scheduleUpdate, {
    opId: randomUUID(),
    id: job.id,
    change: { name: "renamed" },
  });
  assert.deepEqual([changed.job.prompt, changed.job.name, changed.job.person], ["say: changed", "renamed", job.person]);
  assert.equal((await fixture.core.request(store.scheduleRemove, { opId: randomUUID(), id: job.id })).removed, true);
});

test("is refused above the limit, when it runs too often, and to a turn of several people", async () => {
  const turn = await turnOf("121");
  await create(turn, { personLimit: 1 });
  await assert.rejects(create(turn, { personLimit: 1 }), failsWith("INVALID_INPUT", /at most 1 upcoming jobs/));
  for (const schedule of ["every 30s", "*/20 * * * * *", "0,30 0 9 * * *"])
    await assert.rejects(create(turn, { schedule }), failsWith("INVALID_INPUT", /at least 60 seconds/), schedule);
  const both = await turnOf("122");
  await fixture.sql.query(
    `INSERT INTO parley.inbox (id, session_id, seq, channel, account, external_id, priority, parts, sender, mode, trust, state, turn_id)
     SELECT gen_random_uuid(), session_id, seq + 1, channel, account, gen_random_uuid()::text, priority, parts,
            replace(sender, '"id":"122"', '"id":"123"'), mode, trust, 'claimed', turn_id FROM parley.inbox WHERE turn_id = $1`,
    [both.turnId],
  );
  await assert.rejects(create(both), failsWith("INVALID_INPUT", /^several people wrote to this turn/));
});

test("stops when its person is no longer let in", async () => {
  const turn = await turnOf("131");
  const job = await create(turn, { afterRun: "delete", overlap: "queue" });
  const add = (role: "user" | "blocked") =>
    fixture.gateway.request(store.contactSet, { ...person("131"), name: null, role });
  await add("user");
  assert.equal((await fire(job.id, "if_paired")).fired, 1);

  await fixture.gateway.request(store.contactRemove, person("131"));
  await assert.rejects(
    fixture.core.request(store.scheduleRun, { opId: randomUUID(), id: job.id, admission: "if_paired" }),
    failsWith("INVALID_INPUT", /no longer let in/),
  );
  assert.deepEqual(await fire(job.id, "if_paired"), { fired: 0, skipped: 1, missed: 0, failed: 0, gone: 0 });
  const { job: stopped, runs } = await get(job.id);
  assert.deepEqual([stopped?.enabled, stopped?.nextDue], [false, null]);
  assert.match(runs[0]?.reason ?? "", /no longer let in/);

  for (const [role, admission, fires] of [
    ["blocked", "if_paired", 0],
    ["user", "never", 0],
    // Without settings of the account nobody is let in.
    ["user", undefined, 0],
    ["user", "if_paired", 1],
    ["blocked", "listed", 1],
  ] as const) {
    await add(role);
    await fixture.core.request(store.scheduleUpdate, { opId: randomUUID(), id: job.id, change: { enabled: true } });
    assert.equal((await fire(job.id, admission)).fired, fires, `${role} ${admission}`);
  }
});

test("follows the stored settings of an account that was added while the cluster runs", async () => {
  const turn = await turnOf("141");
  const job = await create(turn, { overlap: "queue" });
  const put = (settings: object) =>
    fixture.sql.query(
      `INSERT INTO parley.channel_accounts (channel, account, settings, added_by) VALUES ('telegram', 'main', $1, 'test')
       ON CONFLICT (channel, account) DO UPDATE SET settings = excluded.settings`,
      [JSON.stringify(settings)],
    );
  await put({ allow_from: ["141"] });
  assert.equal((await fire(job.id)).fired, 1);
  await put({ allow_from: [] });
  assert.equal((await fire(job.id)).skipped, 1);
});
