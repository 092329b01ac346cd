// Messages whose callers wait for their answers: each is a turn alone, regardless of the session's queue; on a real PostgreSQL.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { store, type InboundMessage } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import fc from "fast-check";
import { openDatabase } from "../src/db/database.ts";
import { deleteExpiredSessions } from "../src/retention/sessions.ts";
import { openStoreFixture, saying, stepOf, type StoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;

before(async () => {
  fixture = await openStoreFixture(cleanup);
});
after(() => cleanup[Symbol.asyncDispose]());

const put = (key: string, text: string, more: Partial<InboundMessage> = {}) =>
  fixture.put(key, { ...saying(text), ...more });
const steering = { mode: "steer" } as const;
const exclusive = { exclusive: true } as const;

const claim = (sessionId: string) =>
  fixture.core.request(store.turnClaim, { ...fixture.fenced(), sessionId, knownSeq: 0, maxClaims: 5 });

/** Ends the turn with its next model call. */
const end = (turnId: string, n = 1) => fixture.core.request(store.stepCommit, stepOf(fixture.fenced(), turnId, n));

/** Absorbs queued input into the turn. */
async function absorbed(turnId: string): Promise<string[]> {
  const input = { ...fixture.fenced(), turnId, results: 0, notes: [], skipped: null, absorb: true };
  return (await fixture.core.request(store.turnAppend, input)).inboxIds;
}

interface Claimed {
  exclusive: boolean;
  rows: string[];
  /** How many of the rows the turn started with; it absorbed the others. */
  started: number;
}

/** Claims and ends turns until the queue is empty; with `absorb` each absorbs input before it ends. */
async function drained(sessionId: string, absorb: boolean): Promise<Claimed[]> {
  const turns: Claimed[] = [];
  for (;;) {
    const answer = await claim(sessionId);
    if (answer.status !== "started") return turns;
    const { turnId, inboxIds, exclusive = false } = answer.turn;
    const rows = [...inboxIds, ...(absorb ? await absorbed(turnId) : [])];
    turns.push({ exclusive, rows, started: inboxIds.length });
    await end(turnId);
  }
}

describe("a queue of rows", () => {
  const row = fc.record({
    exclusive: fc.boolean(),
    mode: fc.constantFrom("steer", "queue", "coalesce", "interrupt"),
    role: fc.constantFrom("owner", "guest"),
    contact: fc.record({ id: fc.constantFrom("7", "8") }),
  });

  test("property: an exclusive row is alone in its turn, order is kept and nothing is lost", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 10 }), fc.boolean(), async (rows, absorb) => {
        const key = randomUUID();
        const ids: string[] = [];
        let sessionId = "";
        for (const [index, each] of rows.entries()) {
          const kept = await put(key, `row ${index}`, { ...each, windowMs: 0 });
          sessionId = kept.sessionId;
          ids.push(kept.inboxId);
        }
        const turns = await drained(sessionId, absorb);
        const taken = turns.flatMap((turn) => turn.rows);
        assert.deepEqual(taken.toSorted(), ids.toSorted(), "every row is in exactly one turn");
        for (const turn of turns) {
          const positions = turn.rows.map((id) => ids.indexOf(id));
          const marks = positions.map((position) => rows[position]?.exclusive);
          assert.equal(turn.exclusive, marks.includes(true));
          if (turn.exclusive) assert.equal(turn.rows.length, 1, "nothing shares the turn of an exclusive row");
          // A turn that starts with several rows of one sender may absorb a row between them.
          for (const part of [positions.slice(0, turn.started), positions.slice(turn.started)])
            assert.deepEqual(
              part,
              part.toSorted((a, b) => a - b),
            );
        }
        const first = turns.map((turn) => ids.indexOf(turn.rows[0] ?? ""));
        assert.deepEqual(
          first,
          first.toSorted((a, b) => a - b),
          "turns begin in the order of their first rows",
        );
        if (absorb) return;
        for (const [at, turn] of turns.entries()) {
          if (!turn.exclusive) continue;
          const own = first[at] ?? 0;
          const before = turns.slice(0, at).flatMap((each) => each.rows.map((id) => ids.indexOf(id)));
          assert.ok(Math.max(-1, ...before) < own, "nothing after an exclusive row is claimed before it");
        }
      }),
      {
        numRuns: 60,
        examples: [
          [
            (["coalesce", "steer", "coalesce", "steer"] as const).map((mode) => ({
              exclusive: false,
              mode,
              role: "owner" as const,
              contact: { id: "7" as const },
            })),
            true,
          ],
        ],
      },
    );
  });
});

describe("while a turn runs", () => {
  test("steering input starts its own turn when the running turn is exclusive", async () => {
    const key = randomUUID();
    const { sessionId } = await put(key, "call", exclusive);
    const running = await fixture.started(sessionId);
    assert.equal(running.exclusive, true);
    const steered = await put(key, "steer", steering);
    assert.deepEqual(await absorbed(running.turnId), []);
    const resumed = await claim(sessionId);
    assert.ok(resumed.status === "resumed");
    assert.deepEqual([resumed.steerable, resumed.turn.exclusive], [false, true]);
    const call = { callId: "call-2", tool: "exec", class: "once" as const, input: "{}" };
    const step = stepOf(fixture.fenced(), running.turnId, 1, { toolCalls: [call], finish: null });
    assert.equal((await fixture.core.request(store.stepCommit, step)).steerable, false);
    const finish = { state: "cancelled" as const, exitReason: "interrupted" as const, text: "Stopped." };
    const ending = { turnId: running.turnId, parts: [], model: null, unsettled: "Cancelled", outgoing: [], finish };
    await fixture.core.request(store.turnFinish, { ...fixture.fenced(), ...ending });
    assert.deepEqual((await fixture.started(sessionId)).inboxIds, [steered.inboxId]);
  });

  test("an exclusive row does not join a running turn, also when its mode allows it", async () => {
    const key = randomUUID();
    const { sessionId } = await put(key, "chat", steering);
    const { turnId } = await fixture.started(sessionId);
    const called = await put(key, "call", { ...exclusive, ...steering });
    assert.deepEqual(await absorbed(turnId), []);
    await end(turnId);
    assert.deepEqual((await fixture.started(sessionId)).inboxIds, [called.inboxId]);
  });

  test("an exclusive row keeps its mode but can be edited and cancelled while queued", async () => {
    const { inboxId } = await put(randomUUID(), "call", exclusive);
    const edit = async (change: Parameters<typeof fixture.gateway.request<typeof store.inboxEdit>>[1]["change"]) =>
      (await fixture.gateway.request(store.inboxEdit, { inboxId, change })).changed;
    assert.equal(await edit({ do: "mode", mode: "steer" }), false);
    assert.equal(await edit({ do: "text", text: "reworded" }), true);
    assert.equal(await edit({ do: "cancel" }), true);
  });

  test("put names a running exclusive turn when the message would interrupt it", async () => {
    const key = randomUUID();
    const { sessionId } = await put(key, "call", exclusive);
    const { turnId } = await fixture.started(sessionId);
    const interrupting = await put(key, "now", { mode: "interrupt" });
    assert.deepEqual([interrupting.runningTurnId, interrupting.runningExclusive], [turnId, true]);
  });

  test("a turn is to stop from its start when a message that may interrupt it arrived before", async () => {
    const guest = (id: string) => ({ role: "guest", contact: { id } }) as const;
    const isStopped = async (first: Partial<InboundMessage>, ...later: Partial<InboundMessage>[]) => {
      const key = randomUUID();
      const { sessionId } = await put(key, "first", { mode: "queue", ...first });
      for (const each of later) await put(key, "later", each);
      const answer = await claim(sessionId);
      assert.equal(answer.status, "started");
      return answer.status === "started" && answer.turn.cancelRequested;
    };
    const now = { mode: "interrupt" } as const;
    assert.equal(await isStopped({}, now), true);
    assert.equal(await isStopped({}, { mode: "queue" }, now), true);
    assert.equal(await isStopped(now), false);
    assert.equal(await isStopped({}, { mode: "queue" }), false);
    assert.equal(await isStopped(guest("7"), now), true, "the owner stops any turn");
    assert.equal(await isStopped(guest("7"), { ...guest("7"), ...now }), true);
    assert.equal(await isStopped(guest("7"), { ...guest("8"), ...now }), false);
    assert.equal(await isStopped({}, { ...guest("8"), ...now }), false);
    assert.equal(await isStopped(exclusive, now), false, "a caller waits for its answer");
  });

  test("an exclusive row does not answer a question of another turn", async () => {
    const key = randomUUID();
    const { sessionId } = await put(key, "ask me");
    const { turnId } = await fixture.started(sessionId);
    const call = { callId: "call-2", tool: "ask_user", class: "once" as const, input: "{}" };
    const step = stepOf(fixture.fenced(), turnId, 1, { toolCalls: [call], finish: null });
    await fixture.core.request(store.stepCommit, step);
    const question = { turnId, n: 2, question: "Which?", options: [], expiresInMs: 60_000, outgoing: [] };
    await fixture.core.request(store.questionAsk, { ...fixture.fenced(), ...question });
    const externalId = randomUUID();
    const called = await put(key, "call", { ...exclusive, externalId });
    const again = await put(key, "call", { ...exclusive, externalId });
    assert.deepEqual([again.inboxId, again.duplicate], [called.inboxId, true]);
    const get = (inboxId: string) => fixture.gateway.request(store.inboxGet, { inboxId });
    assert.equal((await get(called.inboxId)).state, "queued");
    const answered = await put(key, "the answer");
    assert.equal((await get(answered.inboxId)).turn?.turnId, turnId);
  });
});

describe("sessions of single calls", () => {
  const call = async (key: string) =>
    (
      await fixture.gateway.request(store.inboxPut, {
        message: { ...inboundCall() },
        sessionKey: key,
        singleCall: true,
      })
    ).sessionId;
  const inboundCall = (): InboundMessage => ({
    channel: "http",
    account: "default",
    externalId: randomUUID(),
    conversation: "call",
    contact: { id: "owner" },
    role: "owner",
    origin: "user",
    parts: [{ type: "text", text: "call" }],
    replyTo: null,
    exclusive: true,
  });

  test("are listed only when requested, and can be read by their key", async () => {
    const key = `http:default:run-${randomUUID()}`;
    const sessionId = await call(key);
    const listed = async (calls: boolean) =>
      (await fixture.gateway.request(store.sessionList, { limit: 200, calls })).sessions.map((each) => each.sessionId);
    assert.ok(!(await listed(false)).includes(sessionId));
    assert.ok((await listed(true)).includes(sessionId));
    assert.equal((await fixture.gateway.request(store.sessionGet, { key })).session?.sessionId, sessionId);
  });

  test("are deleted when idle for longer than call_retention_days, unlike other sessions", async () => {
    const database = openDatabase(fixture.stack.postgres.storeUrl, 1, () => undefined);
    cleanup.add(() => database.pool.end());
    const [old, fresh] = [await call(randomUUID()), await call(randomUUID())];
    const { sessionId: chat } = await put(randomUUID(), "chat");
    for (const sessionId of [old, fresh, chat]) await end((await fixture.started(sessionId)).turnId);
    await fixture.sql.query("UPDATE parley.sessions SET updated_at = now() - interval '31 days' WHERE id = ANY($1)", [
      [old, chat],
    ]);
    const settings = { retention_days: 0, call_retention_days: 0, max_sessions: 0, max_messages: 0 };
    assert.equal((await deleteExpiredSessions(database, settings)).sessions, 0);
    assert.equal((await deleteExpiredSessions(database, { ...settings, call_retention_days: 30 })).sessions, 1);
    const left = await fixture.sql.query<{ id: string }>("SELECT id FROM parley.sessions WHERE id = ANY($1)", [
      [old, fresh, chat],
    ]);
    assert.deepEqual(left.rows.map(({ id }) => id).toSorted(), [fresh, chat].toSorted());
  });
});
