// Retention of data related to a session, with the session and on its own; on a real PostgreSQL.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { Bus } from "@parley/bus";
import { noUsage, routeOfKey, store, type Sender } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { openDatabase, type Database } from "../src/db/database.ts";
import { hashOf } from "../src/grants.ts";
import { deleteExpired } from "../src/retention/retention.ts";
import { deleteExpiredSessions } from "../src/retention/sessions.ts";
import { openStoreFixture, type StoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;
let gateway: Bus;
let core: Bus;
let runner: Bus;
let database: Database;

before(async () => {
  fixture = await openStoreFixture(cleanup);
  ({ gateway, core, runner } = fixture);
  database = openDatabase(fixture.stack.postgres.storeUrl, 1, () => undefined);
  cleanup.add(() => database.pool.end());
});
after(() => cleanup[Symbol.asyncDispose]());

/** The key of the runner that owns the processes. */
const key = "k".repeat(43);
const fenced = () => fixture.fenced();
const place = { channel: "telegram", account: "main", conversation: "42" };
const sender: Sender = { ...place, contact: { id: "7" }, role: "owner", origin: "user" };

/** A session whose turn has left a background process and has ended. */
async function worked(route: string) {
  const { sessionId } = await gateway.request(store.inboxPut, {
    message: { ...sender, externalId: randomUUID(), parts: [{ type: "text", text: "go" }], replyTo: place },
    sessionKey: route,
  });
  const claimed = await core.request(store.turnClaim, { ...fenced(), sessionId, knownSeq: 0, maxClaims: 5 });
  assert.ok(claimed.status === "started");
  const { turnId } = claimed.turn;
  const id = `${randomUUID()}@runner`;
  const startedAt = new Date().toISOString();
  const grant = fixture.grant({ sessionId, turnId, n: 1 });
  const process = { id, grant, runner: "runner#1", keyHash: hashOf(key), command: "make", startedAt, notify: false };
  await runner.request(store.processBegin, process);
  await core.request(store.turnFinish, {
    ...fenced(),
    turnId,
    parts: [],
    model: null,
    unsettled: "over",
    outgoing: [],
    finish: { state: "done", exitReason: "end_turn", text: "done" },
  });
  return { sessionId, process: id };
}

/** A listening voice session on this route with events. */
async function heard(route: string): Promise<string> {
  const order = { opId: randomUUID(), route, source: "microphone", sender, replyTo: place };
  const { voiceId } = (await gateway.request(store.voiceOpen, order)).voice;
  await core.request(store.voiceMove, { ...fenced(), voiceId, to: { state: "claimed" }, tell: null });
  const to = { state: "listening" as const, server: "speech", sttSessionId: "s", runner: null };
  await core.request(store.voiceMove, { ...fenced(), voiceId, to, tell: null });
  const events = [{ seq: 1, type: "utterance_partial", text: "between us" }];
  await core.request(store.voiceAdvance, { ...fenced(), voiceId, events, keep: 10 });
  return voiceId;
}

const stopped = (voiceId: string) =>
  core.request(store.voiceMove, { ...fenced(), voiceId, to: { state: "stopped", problem: null }, tell: null });

const archived = (sessionId: string) =>
  database.pool.query(
    "UPDATE parley.sessions SET status = 'archived', updated_at = now() - interval '3 days' WHERE id = $1",
    [sessionId],
  );

const rowsOf = async (table: string, column: string, value: string) =>
  (await database.pool.query(`SELECT FROM parley.${table} WHERE ${column} = $1`, [value])).rowCount;

const settings = { retention_days: 2, call_retention_days: 0, max_sessions: 0, max_messages: 0 };
const gone = async () => (await deleteExpiredSessions(database, settings)).sessions;

test("a session with a running process or active voice is kept, and deletes its voice data", async () => {
  const route = `telegram:main:${randomUUID()}`;
  const { sessionId, process } = await worked(route);
  const voiceId = await heard(route);
  await archived(sessionId);
  assert.equal(await gone(), 0, "a process runs, and voice is active");
  await runner.request(store.processEnd, { id: process, key, text: "it has ended" });
  assert.equal(await gone(), 0, "voice is active");
  await stopped(voiceId);
  assert.equal(await gone(), 1);
  assert.equal(await rowsOf("voice_sessions", "id", voiceId), 0);
  assert.equal(await rowsOf("voice_events", "voice_id", voiceId), 0);
  assert.equal(await rowsOf("processes", "id", process), 0);
});

test("voice data of a rebound route stays with the session that the route is bound to", async () => {
  const route = `telegram:main:${randomUUID()}`;
  const { sessionId, process } = await worked(route);
  await runner.request(store.processEnd, { id: process, key, text: "it has ended" });
  await gateway.request(store.sessionOpen, { opId: randomUUID(), route });
  const voiceId = await heard(route);
  await archived(sessionId);
  assert.equal(await gone(), 1);
  assert.equal(await rowsOf("voice_sessions", "id", voiceId), 1);
});

test("a route begins a new session when the archived one that it is bound to is deleted", async () => {
  const route = `telegram:main:${randomUUID()}`;
  const first = await worked(route);
  await gateway.request(store.sessionOpen, { opId: randomUUID(), route });
  const second = await worked(route);
  await runner.request(store.processEnd, { id: second.process, key, text: "it has ended" });
  assert.notEqual(second.sessionId, first.sessionId);
  await archived(second.sessionId);
  assert.equal(await gone(), 1);
  const third = await worked(route);
  assert.notEqual(third.sessionId, first.sessionId);
  assert.equal(await rowsOf("sessions", "id", first.sessionId), 1);
  const { session } = await gateway.request(store.sessionGet, { sessionId: first.sessionId });
  assert.equal(routeOfKey(session?.key ?? ""), route);
});

test("ended processes and voice events are deleted after their retention", async () => {
  const route = `telegram:main:${randomUUID()}`;
  const [running, ended] = [await worked(`${route}:1`), await worked(`${route}:2`)];
  await runner.request(store.processEnd, { id: ended.process, key, text: "it has ended" });
  const [open, over, fresh] = [await heard(`${route}:1`), await heard(`${route}:2`), await heard(`${route}:3`)];
  await stopped(over);
  await stopped(fresh);
  await database.pool.query("UPDATE parley.processes SET ended_at = now() - interval '8 days' WHERE id = $1", [
    ended.process,
  ]);
  await database.pool.query(
    "UPDATE parley.voice_sessions SET changed_at = now() - interval '31 days' WHERE id = ANY($1::uuid[])",
    [[open, over]],
  );
  await deleteExpired(database, {
    opRetentionHours: 24,
    eventRetentionDays: 30,
    auditRetentionDays: 0,
    checkpointDays: 0,
  });
  const voices = [open, over, fresh].map((id) => rowsOf("voice_sessions", "id", id));
  assert.deepEqual(await Promise.all(voices), [1, 0, 1]);
  const processes = [running, ended].map(({ process }) => rowsOf("processes", "id", process));
  assert.deepEqual(await Promise.all(processes), [1, 0]);
});

test("a text without a turn is deleted after the retention when it is settled and nothing of it is held", async () => {
  const states = ["sent", "unknown", "dropped", "pending", "held", "fresh"];
  const ids = new Map<string, string>();
  for (const state of states) {
    const outgoing = { address: { ...place, conversation: state }, text: "for your information", expiresInMs: 60_000 };
    ids.set(state, (await gateway.request(store.outboxPut, { opId: randomUUID(), outgoing })).outboxId);
  }
  await database.pool.query(
    `UPDATE parley.outbox SET state = CASE conversation WHEN 'held' THEN 'sent' WHEN 'fresh' THEN 'sent' ELSE conversation END,
       held_at = CASE conversation WHEN 'held' THEN 10 END,
       settled_at = CASE conversation WHEN 'pending' THEN NULL WHEN 'fresh' THEN now() ELSE now() - interval '31 days' END
     WHERE conversation = ANY($1)`,
    [states],
  );
  await deleteExpired(database, {
    opRetentionHours: 24,
    eventRetentionDays: 30,
    auditRetentionDays: 0,
    checkpointDays: 0,
  });
  const kept = await Promise.all(states.map((state) => rowsOf("outbox", "id", ids.get(state) ?? "")));
  assert.deepEqual(kept, [0, 0, 0, 1, 1, 1]);
});

test("consolidation costs are kept as long as they can be reported, then deleted", async () => {
  const spent = async (daysAgo: number, costMicros: number) => {
    await core.request(store.memoryConsolidate, {
      ...fenced(),
      model: "test:small",
      usage: noUsage,
      costMicros,
      outcome: { kind: "failed", reason: "no answer" },
    });
    await database.pool.query(
      "UPDATE parley.memory_consolidations SET created_at = now() - $1 * interval '1 day' WHERE cost_micros = $2",
      [daysAgo, costMicros],
    );
  };
  await spent(368, 1);
  await spent(366, 10);
  await spent(0, 100);
  const told = async () => {
    const { rows } = await gateway.request(store.usageReport, { sinceDay: "2000-01-01" });
    return rows.filter(({ model }) => model === "test:small").map(({ cost }) => cost.micros);
  };
  assert.deepEqual(await told(), [1, 10, 100]);
  await deleteExpired(database, {
    opRetentionHours: 24,
    eventRetentionDays: 30,
    auditRetentionDays: 0,
    checkpointDays: 0,
  });
  assert.deepEqual(await told(), [10, 100]);
});

test("audit entries are deleted after their retention, and never before 90 days", async () => {
  await database.pool.query(
    `INSERT INTO parley.audit_log (at, actor, action, target, outcome)
     SELECT now() - days * interval '1 day', 'owner (API)', 'test.' || days, '{}', 'requested' FROM unnest($1::int[]) AS days`,
    [[400, 200, 10]],
  );
  const kept = async () => {
    const { rows } = await database.pool.query<{ action: string }>(
      "SELECT action FROM parley.audit_log WHERE action LIKE 'test.%' ORDER BY n",
    );
    return rows.map(({ action }) => action);
  };
  const retention = { opRetentionHours: 24, eventRetentionDays: 30, checkpointDays: 0 };
  await deleteExpired(database, { ...retention, auditRetentionDays: 0 });
  assert.deepEqual(await kept(), ["test.400", "test.200", "test.10"]);
  await deleteExpired(database, { ...retention, auditRetentionDays: 365 });
  assert.deepEqual(await kept(), ["test.200", "test.10"]);
  await assert.rejects(deleteExpired(database, { ...retention, auditRetentionDays: 1 }), /kept for at least 90 days/);
  await assert.rejects(
    database.pool.query("DELETE FROM parley.audit_log WHERE action = 'test.10'"),
    /at least 90 days/,
  );
  await assert.rejects(database.pool.query("UPDATE parley.audit_log SET actor = 'x'"), /never changed/);
  assert.deepEqual(await kept(), ["test.200", "test.10"]);
});
