// The store's guarantees for the loop: shared turns, joining input, parking and waking, sub-agents, approvals; on a real PostgreSQL and a
// real bus, with both sides of each race at the same time.
import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import type { Bus } from "@parley/bus";
import {
  inboxReady,
  store,
  type ClaimedTurn,
  type InboundMessage,
  type InputOf,
  type Message,
  type ToolResult,
} from "@parley/contracts";
import { Cleanup, type StoreStack } from "@parley/testing";
import type { Client } from "pg";
import { openDatabase } from "../src/db/database.ts";
import { deleteExpired } from "../src/retention/retention.ts";
import { failsWith, inbound, openStoreFixture, saying, stepOf, usage, type StoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;
let stack: StoreStack;
let gateway: Bus;
let core: Bus;
let sql: Client;

before(async () => {
  fixture = await openStoreFixture(cleanup);
  ({ stack, gateway, core, sql } = fixture);
});
after(() => cleanup[Symbol.asyncDispose]());

const fenced = () => fixture.fenced();

const put = (sessionKey: string, text: string, overrides: Partial<InboundMessage> = {}) =>
  fixture.put(sessionKey, { ...saying(text), ...overrides });

function claim(sessionId: string, overrides: Partial<InputOf<typeof store.turnClaim>> = {}) {
  return core.request(store.turnClaim, { ...fenced(), sessionId, knownSeq: 0, maxClaims: 5, ...overrides });
}

async function claimed(sessionId: string, status: "started" | "resumed" = "started") {
  const answer = await claim(sessionId);
  assert.equal(answer.status, status);
  assert.ok(answer.status === "started" || answer.status === "resumed");
  return answer;
}

/** A session with a claimed turn. */
async function running(overrides: Partial<InboundMessage> = {}) {
  const { sessionId } = await put(randomUUID(), "go", overrides);
  const { turn } = await claimed(sessionId);
  return { sessionId, turnId: turn.turnId };
}

const commit = (turnId: string, n: number, overrides: Partial<InputOf<typeof store.stepCommit>> = {}) =>
  core.request(store.stepCommit, stepOf(fenced(), turnId, n, { costMicros: 100, ...overrides }));

// design: 003.2c
test("returns what a session used before a turn only when a claim requests it", async () => {
  const key = randomUUID();
  for (let used = 0; used < 3; used += 1) {
    const { sessionId } = await put(key, "go");
    const answer = await claim(sessionId, { withEarlier: true });
    assert.ok(answer.status === "started");
    assert.deepEqual(answer.turn.earlier, { costMicros: used * 100, modelCalls: used });
    await commit(answer.turn.turnId, 1);
  }
  const { sessionId } = await put(key, "go");
  assert.equal((await claimed(sessionId)).turn.earlier, undefined);
});

/** A running turn with this many open calls, which are steps 2, 3 … */
async function calling(
  count: number,
  tool = "exec",
  overrides: Partial<InboundMessage> = {},
  toolClass: "pure" | "idempotent" = "idempotent",
) {
  const { sessionId, turnId } = await running(overrides);
  const toolCalls = Array.from({ length: count }, (_, index) => ({
    callId: `call-${index + 2}`,
    tool,
    class: toolClass,
    input: "{}",
  }));
  await commit(turnId, 1, { toolCalls, finish: null });
  return { sessionId, turnId };
}

function resultOf(n: number, content = `result ${n}`): ToolResult {
  return { type: "tool_result", id: `call-${n}`, name: "exec", content, isError: false };
}

function settle(turnId: string, n: number, content?: string) {
  return core.request(store.stepSettle, { ...fenced(), turnId, n, state: "done", result: resultOf(n, content) });
}

function append(turnId: string, overrides: Partial<InputOf<typeof store.turnAppend>> = {}) {
  return core.request(store.turnAppend, {
    ...fenced(),
    turnId,
    results: 0,
    skipped: null,
    notes: [],
    absorb: false,
    ...overrides,
  });
}

function park(turnId: string, waitingFor: number[], wakeAt: string | null = null) {
  return core.request(store.turnPark, { ...fenced(), turnId, waitingFor, wakeAt });
}

function finish(turnId: string, overrides: Partial<InputOf<typeof store.turnFinish>> = {}) {
  return core.request(store.turnFinish, {
    ...fenced(),
    turnId,
    parts: [],
    model: null,
    unsettled: "Cancelled",
    outgoing: [],
    finish: { state: "cancelled", exitReason: "interrupted", text: "Stopped." },
    ...overrides,
  });
}

let questions = 0;

async function ask(turnId: string, n: number, overrides: Partial<InputOf<typeof store.approvalRequest>> = {}) {
  questions += 1;
  const { approval, seq } = await core.request(store.approvalRequest, {
    ...fenced(),
    turnId,
    n,
    id: `ASK${String(questions).padStart(4, "0")}`,
    tool: "exec",
    callHash: "a".repeat(64),
    summary: "rm x",
    reason: "it asks",
    expiresInMs: 60_000,
    outgoing: [],
    ...overrides,
  });
  assert.ok(approval !== null);
  return { approval, seq };
}

function decide(id: string, allow = true) {
  return gateway.request(store.approvalDecide, { id, allow, always: false, by: "owner" });
}

function spawn(turnId: string, n: number, overrides: Partial<InputOf<typeof store.turnSpawn>> = {}) {
  return core.request(store.turnSpawn, {
    ...fenced(),
    turnId,
    n,
    mode: "wait",
    profile: "reader",
    title: "look",
    parts: [{ type: "text", text: "look there" }],
    maxChildren: 5,
    resume: null,
    announce: "queue",
    ...overrides,
  });
}

/** Starts a sub-agent and claims its turn. */
async function child(turnId: string, n: number, overrides: Partial<InputOf<typeof store.turnSpawn>> = {}) {
  const started = await spawn(turnId, n, overrides);
  assert.ok(started.status === "started");
  const { turn } = await claimed(started.sessionId);
  return { sessionId: started.sessionId, turn };
}

async function stepsOf(turnId: string) {
  return (await core.request(store.turnGet, { turnId })).steps;
}

async function isParked(turnId: string): Promise<boolean> {
  const { rows } = await sql.query<{ parked: boolean }>("SELECT parked FROM parley.turns WHERE id = $1", [turnId]);
  return rows[0]?.parked ?? false;
}

function textsOf(messages: readonly Message[]): string[] {
  return messages.map(({ parts }) =>
    parts.map((part) => (part.type === "text" ? part.text : part.type === "tool_result" ? part.content : "")).join("+"),
  );
}

describe("rows that share a turn", () => {
  // design: 000.38, 004.34
  test("all steering rows of equal trust become one turn with one message per row", async () => {
    const key = randomUUID();
    const { sessionId } = await put(key, "one", { mode: "steer" });
    await put(key, "two", {
      mode: "steer",
      conversation: "43",
      replyTo: { channel: "telegram", account: "main", conversation: "43" },
    });
    await put(key, "guest", { mode: "steer", role: "guest" });
    await put(key, "later");
    const { turn, messages } = await claimed(sessionId);
    assert.deepEqual(textsOf(messages), ["one", "two"]);
    assert.equal(turn.inboxIds.length, 2);
    assert.deepEqual(
      turn.alsoTo.map(({ conversation }) => conversation),
      ["43"],
    );
    await commit(turn.turnId, 1);
    assert.deepEqual(textsOf((await claimed(sessionId)).messages).slice(-1), ["guest"]);
  });

  // design: 000.2
  test("rows of one sender in a window become one turn, and another sender's rows do not", async () => {
    const key = randomUUID();
    const mode = { mode: "coalesce", windowMs: 60_000 } as const;
    const { sessionId } = await put(key, "one", mode);
    await put(key, "two", mode);
    await put(key, "other", { ...mode, contact: { id: "8" } });
    assert.equal((await claim(sessionId)).status, "empty");
    assert.deepEqual(await gateway.request(store.inboxFlush, { sessionId }), { flushed: 3 });
    const { turn, messages } = await claimed(sessionId);
    assert.deepEqual(textsOf(messages), ["one", "two"]);
    await commit(turn.turnId, 1);
    assert.deepEqual(textsOf((await claimed(sessionId)).messages).slice(-1), ["other"]);
  });

  // design: 000.2
  test("coalesced rows that arrive during a turn do not join it, and become the one next turn", async () => {
    const { sessionId, turnId } = await calling(1);
    const { key } = (await gateway.request(store.sessionGet, { sessionId })).session ?? { key: "" };
    const mode = { mode: "coalesce", windowMs: 60_000 } as const;
    await put(key, "one", mode);
    await put(key, "two", mode);
    assert.deepEqual(await gateway.request(store.inboxFlush, { sessionId }), { flushed: 2 });
    await settle(turnId, 2);
    assert.deepEqual((await append(turnId, { results: 1, absorb: true })).inboxIds, []);
    await commit(turnId, 3);
    const { turn, messages } = await claimed(sessionId);
    assert.equal(turn.inboxIds.length, 2);
    assert.deepEqual(textsOf(messages).slice(-2), ["one", "two"]);
  });

  test("each further message extends the window of earlier ones, up to five windows", async () => {
    const key = randomUUID();
    const mode = { mode: "coalesce", windowMs: 10_000 } as const;
    const { sessionId, inboxId } = await put(key, "one", mode);
    const due = async () => {
      const { rows } = await sql.query<{ ms: number }>(
        "SELECT (extract(epoch FROM ready_at - received_at) * 1000)::float8 AS ms FROM parley.inbox WHERE id = $1",
        [inboxId],
      );
      return rows[0]?.ms ?? 0;
    };
    await sql.query("UPDATE parley.inbox SET received_at = received_at - interval '8 seconds' WHERE id = $1", [
      inboxId,
    ]);
    await put(key, "two", mode);
    assert.ok((await due()) >= 18_000, "the second message has not extended the first one's window");
    await sql.query("UPDATE parley.inbox SET received_at = now() - interval '49 seconds' WHERE id = $1", [inboxId]);
    await put(key, "three", mode);
    assert.equal(Math.round(await due()), 50_000);
    await sql.query("UPDATE parley.inbox SET ready_at = now() WHERE id = $1", [inboxId]);
    assert.deepEqual(textsOf((await claimed(sessionId)).messages), ["one", "two", "three"]);
  });

  test("waiting raises priority until a cron job precedes newer messages of people", async () => {
    for (const [waited, first] of [
      [25, "person"],
      [35, "job"],
    ] as const) {
      const key = randomUUID();
      const { sessionId, inboxId } = await put(key, "job", { origin: "cron" });
      await put(key, "person");
      await sql.query("UPDATE parley.inbox SET received_at = now() - $2 * interval '1 second' WHERE id = $1", [
        inboxId,
        waited,
      ]);
      const answer = await claim(sessionId, { ageingSeconds: 10 });
      assert.ok(answer.status === "started");
      assert.deepEqual(textsOf(answer.messages), [first], `after ${waited} s`);
    }
  });

  test("a cancelled row is never claimed, also in a race", async () => {
    for (let round = 0; round < 20; round++) {
      const { sessionId, inboxId } = await put(randomUUID(), "hello");
      const [{ changed }, answer] = await Promise.all([
        gateway.request(store.inboxEdit, { inboxId, change: { do: "cancel" } }),
        claim(sessionId),
      ]);
      assert.equal(answer.status === "started", !changed, `changed ${changed}, claim ${answer.status}`);
    }
  });
});

describe("results that a commit settles", () => {
  const settled = (n: number, content?: string) => ({ n, state: "done" as const, result: resultOf(n, content) });
  const states = async (turnId: string) => {
    const { steps } = await core.request(store.turnGet, { turnId });
    return steps.map(({ state, result }) => [state, result?.content]);
  };

  test("are in the conversation and in their steps, with those that a runner settled", async () => {
    const { sessionId, turnId } = await calling(3, "read", {}, "pure");
    await settle(turnId, 3);
    const content = "two \"quotes\" 'and' \\ \u0000 \u{1F600} $1";
    const { resultsSeq } = await commit(turnId, 5, { results: 3, settled: [settled(2, content), settled(4)] });
    const { messages } = await core.request(store.sessionMessages, { sessionId, afterSeq: 0, limit: 10 });
    assert.deepEqual(textsOf(messages.filter(({ seq }) => seq === resultsSeq)), [`${content}+result 3+result 4`]);
    assert.deepEqual(await states(turnId), [
      ["done", content],
      ["done", "result 3"],
      ["done", "result 4"],
    ]);
  });

  test("replace results of an earlier attempt and are not replaced by later ones", async () => {
    const { turnId } = await calling(1, "read", {}, "pure");
    await settle(turnId, 2, "of the leader before");
    const { events } = await append(turnId, { results: 1, settled: [settled(2, "shown")], notes: [] });
    const messages = events.flatMap((event) => (event.type === "message" ? [event.message] : []));
    assert.deepEqual(textsOf(messages), ["shown"]);
    await settle(turnId, 2, "too late");
    assert.deepEqual(await states(turnId), [["done", "shown"]]);
  });

  test("are stored when the turn is parked or ends", async () => {
    const { turnId } = await calling(3, "read", {}, "pure");
    const parked = { ...fenced(), turnId, waitingFor: [4], wakeAt: null, settled: [settled(2)] };
    assert.equal((await core.request(store.turnPark, parked)).parked, true);
    // A lost reply is requested again.
    assert.equal((await core.request(store.turnPark, parked)).parked, true);
    await finish(turnId, { settled: [settled(3)] });
    assert.deepEqual(await states(turnId), [
      ["done", "result 2"],
      ["done", "result 3"],
      ["cancelled", "Cancelled"],
    ]);
  });

  test("are not stored when the step is refused", async () => {
    const { turnId } = await calling(2, "read", {}, "pure");
    await assert.rejects(commit(turnId, 4, { results: 1, settled: [settled(2)] }), failsWith("CONFLICT"));
    await assert.rejects(commit(turnId, 9, { results: 1, settled: [settled(2)] }), failsWith("CONFLICT"));
    assert.deepEqual(await states(turnId), [
      ["intended", undefined],
      ["intended", undefined],
    ]);
  });

  test("are ignored from a stale leader and for calls that are not pure", async () => {
    const { turnId } = await calling(1);
    const late = { results: 1, settled: [settled(2)] };
    await assert.rejects(commit(turnId, 3, { ...late, epoch: fixture.epoch - 1 }), failsWith("STALE_EPOCH"));
    await assert.rejects(commit(turnId, 3, late), failsWith("CONFLICT"));
    assert.deepEqual(await states(turnId), [["intended", undefined]]);
  });
});

describe("while a turn runs", () => {
  test("`reject` stores nothing, and `interrupt` is stored and names the turn to stop", async () => {
    const key = randomUUID();
    const { sessionId } = await put(key, "go");
    const { turn } = await claimed(sessionId);
    const refused = await put(key, "no", { mode: "reject" });
    assert.deepEqual([refused.refused, refused.runningTurnId], [true, turn.turnId]);
    const interrupts = await put(key, "now", { mode: "interrupt" });
    assert.deepEqual([interrupts.refused, interrupts.runningTurnId], [false, turn.turnId]);
    const externalId = randomUUID();
    const twice = [externalId, externalId].map((id) => put(key, "at once", { mode: "interrupt", externalId: id }));
    const again = (await Promise.all(twice)).find(({ duplicate }) => duplicate);
    assert.deepEqual([again?.waits, again?.runningTurnId], [true, turn.turnId]);
    const first = await put(key, "go");
    assert.deepEqual([first.duplicate, first.waits], [false, undefined]);
    const { rows } = await gateway.request(store.inboxList, { sessionId, limit: 10 });
    assert.deepEqual(
      rows.map(({ text }) => text),
      ["now", "at once", "go"],
    );
  });

  test("redacts unhooked results when the turn ends, and keeps rewritten ones", async () => {
    const { sessionId, turnId } = await calling(3);
    await settle(turnId, 2, "secret");
    await settle(turnId, 3, "secret");
    const { events } = await finish(turnId, {
      rewritten: [{ n: 3, result: resultOf(3, "cleaned") }],
      withhold: { steps: [2, 4], text: "withheld" },
    });
    const messages = events.flatMap((event) => (event.type === "message" ? [event.message] : []));
    assert.deepEqual(textsOf(messages), ["withheld+cleaned+Cancelled"]);
    const { steps } = await core.request(store.turnGet, { turnId });
    assert.doesNotMatch(JSON.stringify(steps), /secret/);
    const again = await gateway.request(store.eventList, { sessionId, afterSeq: 0, limit: 50 });
    assert.doesNotMatch(JSON.stringify(again), /secret/);
  });

  test("a dead turn contains no result that hooks have not processed", async () => {
    const { sessionId, turnId } = await calling(2);
    await settle(turnId, 2, "secret");
    const buried = await claim(sessionId, { maxClaims: 1, withhold: "withheld" });
    assert.ok(buried.status === "dead");
    const messages = buried.finished.flatMap((event) => (event.type === "message" ? [event.message] : []));
    assert.deepEqual(textsOf(messages), ["withheld+Interrupted; the outcome is unknown."]);
  });

  // design: 000.38, 004.3, 004.34
  test("append adds results, notes and input in this order, and only steering of equal trust", async () => {
    const { sessionId, turnId } = await calling(2);
    const { key } = (await gateway.request(store.sessionGet, { sessionId })).session ?? { key: "" };
    await put(key, "joins", { mode: "steer" });
    await put(key, "guest", { mode: "steer", role: "guest" });
    await put(key, "waits");
    await settle(turnId, 3);
    await settle(turnId, 2);
    const rewritten = [{ n: 2, result: resultOf(2, "rewritten") }];
    const notes = [[{ type: "text" as const, text: "note" }]];
    const { events, inboxIds } = await append(turnId, { results: 2, rewritten, notes, absorb: true });
    const messages = events.flatMap((event) => (event.type === "message" ? [event.message] : []));
    assert.deepEqual(textsOf(messages), ["rewritten+result 3", "note", "joins"]);
    assert.deepEqual(
      messages.map(({ from }) => from?.origin),
      [undefined, undefined, "user"],
    );
    assert.equal(inboxIds.length, 1);
    assert.equal((await commit(turnId, 4)).queued, true);
  });

  test("append leaves steering input queued for the next turn when the turn was stopped", async () => {
    const { sessionId, turnId } = await calling(1);
    const { key } = (await gateway.request(store.sessionGet, { sessionId })).session ?? { key: "" };
    const waiting = await put(key, "instead", { mode: "steer" });
    await gateway.request(store.turnCancel, { sessionId, queued: false });
    await settle(turnId, 2);
    assert.deepEqual((await append(turnId, { results: 1, absorb: true })).inboxIds, []);
    assert.equal((await finish(turnId)).queued, true);
    assert.deepEqual((await claimed(sessionId)).turn.inboxIds, [waiting.inboxId]);
  });

  // design: 004.34b
  test("append lets fifty messages join, or as many as fit in 128 KiB, and the others with the next one", async () => {
    const joined = async (texts: readonly string[]) => {
      const { sessionId, turnId } = await running();
      const { key } = (await gateway.request(store.sessionGet, { sessionId })).session ?? { key: "" };
      for (const text of texts) await put(key, text, { mode: "steer" });
      const sizes: number[] = [];
      for (;;) {
        const { inboxIds } = await append(turnId, { absorb: true });
        if (inboxIds.length === 0) return sizes;
        sizes.push(inboxIds.length);
      }
    };
    assert.deepEqual(await joined(Array.from({ length: 51 }, (_, index) => `steer ${index}`)), [50, 1]);
    const overhead = JSON.stringify([{ type: "text", text: "" }]).length;
    const half = "x".repeat(64 * 1024 - overhead);
    assert.deepEqual(await joined([half, half, "x"]), [2, 1]);
    assert.deepEqual(await joined([half, `${half}x`, "x"]), [1, 2]);
  });

  test("skipped calls get the given text, and started calls keep their results", async () => {
    const { turnId } = await calling(3);
    await settle(turnId, 2);
    const { events } = await append(turnId, { results: 1, skipped: "Skipped." });
    const [event] = events;
    assert.ok(event?.type === "message");
    assert.deepEqual(textsOf([event.message]), ["result 2+Skipped.+Skipped."]);
  });

  test("a leader with another number of results is refused, and nothing is written", async () => {
    const { sessionId, turnId } = await calling(2);
    await settle(turnId, 2);
    await assert.rejects(append(turnId, { results: 1 }), failsWith("CONFLICT"));
    await settle(turnId, 3);
    await assert.rejects(append(turnId, { results: 1 }), failsWith("CONFLICT"));
    const { messages } = await core.request(store.sessionMessages, { sessionId, afterSeq: 0, limit: 10 });
    assert.equal(messages.filter(({ role }) => role === "tool").length, 0);
  });

  test("a repeated operation id appends nothing twice", async () => {
    const { turnId } = await calling(1);
    await settle(turnId, 2);
    const request = { ...fenced(), turnId, results: 1, skipped: null, notes: [], absorb: true };
    const first = await core.request(store.turnAppend, request);
    assert.deepEqual(await core.request(store.turnAppend, request), first);
    assert.equal((await commit(turnId, 3)).resultsSeq, null);
  });

  test("concurrent steering, stopping and queueing do not deadlock", async () => {
    for (let round = 0; round < 10; round++) {
      const { sessionId, turnId } = await running();
      const { key } = (await gateway.request(store.sessionGet, { sessionId })).session ?? { key: "" };
      await Promise.all(Array.from({ length: 3 }, () => put(key, "steer", { mode: "steer" })));
      await Promise.all([
        append(turnId, { absorb: true }),
        gateway.request(store.turnCancel, { sessionId, queued: true }),
        put(key, "more", { mode: "steer" }),
      ]);
      await finish(turnId);
    }
  });
});

describe("a parked turn", () => {
  /** Parks during another event; the turn must never stay parked. */
  async function never(
    happens: (around: { sessionId: string; turnId: string; approvalId: string }) => Promise<unknown>,
    rounds = 30,
  ) {
    for (let round = 0; round < rounds; round++) {
      const { sessionId, turnId } = await calling(1);
      const { approval } = await ask(turnId, 2);
      const around = { sessionId, turnId, approvalId: approval.id };
      const [{ parked }] = await Promise.all([park(turnId, [2]), happens(around)]);
      assert.equal(await isParked(turnId), false, `still parked in round ${round}, parked: ${parked}`);
      assert.equal((await claimed(sessionId, "resumed")).turn.turnId, turnId);
    }
  }

  test("is unparked by a concurrent settlement", () => never(({ turnId }) => settle(turnId, 2)));

  test("is unparked by a concurrent decision", () => never(({ approvalId }) => decide(approvalId)));

  test("is unparked by a concurrent stop", () =>
    never(({ sessionId }) => gateway.request(store.turnCancel, { sessionId, queued: false })));

  test("is woken, with a hint to the leader, by a later settlement", async () => {
    const { sessionId, turnId } = await calling(1);
    assert.deepEqual(await park(turnId, [2]), { parked: true });
    assert.equal((await claim(sessionId)).status, "empty");
    const woken = Promise.withResolvers<void>();
    const hints = core.subscribe(inboxReady, {}, (hint) => {
      if (hint.sessionId === sessionId) woken.resolve();
    });
    await core.flush();
    await settle(turnId, 2);
    await woken.promise;
    hints.close();
    assert.equal((await claimed(sessionId, "resumed")).turn.openSteps[0]?.result?.content, "result 2");
  });

  test("is claimed again at its wake time", async () => {
    const { sessionId, turnId } = await calling(1);
    await park(turnId, [2], new Date(Date.now() + 60_000).toISOString());
    assert.equal((await claim(sessionId)).status, "empty");
    await sql.query("UPDATE parley.turns SET wake_at = now() WHERE id = $1", [turnId]);
    const { sessions } = await core.request(store.inboxPending, { epoch: fixture.epoch, limit: 1_000 });
    assert.ok(sessions.some((each) => each.sessionId === sessionId && each.resume));
    await claimed(sessionId, "resumed");
  });

  test("stays parked for a sub-agent after its approval was answered", async () => {
    const { turnId } = await calling(1, "sessions_spawn");
    const { approval } = await ask(turnId, 2);
    await decide(approval.id);
    await spawn(turnId, 2);
    assert.deepEqual(await park(turnId, [2]), { parked: true });
  });
});

describe("sub-agents", () => {
  test("one step has one sub-agent, also when requested repeatedly", async () => {
    const { turnId } = await calling(1, "sessions_spawn");
    const answers = await Promise.all(Array.from({ length: 4 }, () => spawn(turnId, 2)));
    const ids = answers.map((answer) => (answer.status === "started" ? answer.sessionId : ""));
    assert.equal(new Set(ids).size, 1);
  });

  // design: 003.33b, 004.11
  test("limits concurrent children, also in a race, and leaves a refused step unchanged", async () => {
    const { turnId } = await calling(4, "sessions_spawn");
    const answers = await Promise.all([2, 3, 4, 5].map((n) => spawn(turnId, n, { maxChildren: 2 })));
    assert.equal(answers.filter(({ status }) => status === "started").length, 2);
    const steps = await stepsOf(turnId);
    assert.equal(steps.filter(({ state, result }) => state === "intended" && result === null).length, 2);
  });

  test("its end settles the waiting call once and wakes the turn", async () => {
    const { sessionId, turnId } = await calling(1, "sessions_spawn");
    const { turn } = await child(turnId, 2);
    assert.deepEqual([turn.parent?.turnId, turn.parent?.n, turn.root.turnId], [turnId, 2, turnId]);
    await park(turnId, [2]);
    await commit(turn.turnId, 1);
    assert.equal(await isParked(turnId), false);
    const [step] = (await claimed(sessionId, "resumed")).turn.openSteps;
    assert.deepEqual([step?.state, step?.result?.isError], ["done", false]);
    await settle(turnId, 2, "too late");
    assert.match((await stepsOf(turnId))[0]?.result?.content ?? "", /^answer\n\n\[sub-agent [0-9a-f-]{36}\]$/);
  });

  test("results of several sub-agents fit in one bus message and are shortened if necessary", async () => {
    const { turnId } = await calling(8, "sessions_spawn");
    const long = '"'.repeat(100_000);
    for (const n of [2, 3, 4, 5, 6, 7, 8, 9]) {
      const { turn } = await child(turnId, n);
      await commit(turn.turnId, 1, { finish: { state: "done", exitReason: "end_turn", text: long } });
    }
    const { events } = await append(turnId, { results: 8 });
    assert.match(JSON.stringify(events), /cut: \d+ of 100000 characters/);
  });

  for (const end of ["failed", "cancelled", "buried"] as const) {
    // design: 004.10
    test(`one that is ${end} reports that to the waiting call`, async () => {
      const { turnId } = await calling(1, "sessions_spawn");
      const { sessionId, turn } = await child(turnId, 2);
      if (end === "buried") await claim(sessionId, { maxClaims: 1 });
      else await finish(turn.turnId, { finish: { state: end, exitReason: "error", text: "It broke." } });
      const [step] = await stepsOf(turnId);
      assert.equal(step?.state, "failed");
      assert.match(step.result?.content ?? "", /did not finish/);
    });
  }

  // design: 004.11, 004.12
  test("a background result reaches the parent's session once, with its address and trust", async () => {
    const { sessionId, turnId } = await calling(1, "sessions_spawn");
    const { turn } = await child(turnId, 2, { mode: "background" });
    assert.match((await stepsOf(turnId))[0]?.result?.content ?? "", /Started sub-agent/);
    const end = { ...fenced(), turnId: turn.turnId, n: 1, model: "test", stopReason: "end_turn", usage };
    const closing: InputOf<typeof store.stepCommit> = {
      ...end,
      parts: [{ type: "text", text: "found" }],
      results: 0,
      toolCalls: [],
      outgoing: [],
      finish: { state: "done", exitReason: "end_turn", text: "found" },
    };
    await Promise.all([core.request(store.stepCommit, closing), core.request(store.stepCommit, closing)]);
    const { rows } = await gateway.request(store.inboxList, { sessionId, limit: 10 });
    assert.equal(rows.length, 1);
    assert.match(rows[0]?.text ?? "", /has finished\]\n\nfound/);
    await finish(turnId);
    const next = await claimed(sessionId);
    assert.deepEqual([next.turn.trust, next.turn.replyTo?.conversation], ["owner", "42"]);
    const told = next.messages.find(({ from }) => from?.origin === "subagent");
    assert.equal(told?.from?.tainted, undefined, "the sub-agent read nothing untrusted");
  });

  // design: 004.34
  test("a background result joins the parent's running turn when announced with steer, and waits with queue", async () => {
    for (const announce of ["steer", "queue"] as const) {
      const { turnId } = await calling(1, "sessions_spawn");
      const { turn } = await child(turnId, 2, { mode: "background", announce });
      await commit(turn.turnId, 1, { finish: { state: "done", exitReason: "end_turn", text: "found" } });
      const { events } = await append(turnId, { results: 1, absorb: true });
      const reports = events.flatMap((event) =>
        event.type === "message" && event.message.from?.origin === "subagent" ? textsOf([event.message]) : [],
      );
      assert.equal(reports.length, announce === "steer" ? 1 : 0, announce);
      for (const text of reports) assert.match(text, /has finished\]\n\nfound$/);
      assert.equal((await commit(turnId, 3)).queued, announce === "queue");
    }
  });

  for (const tainted of [false, true]) {
    // design: 000.13d
    test(`a report is ${tainted ? "tainted" : "untainted"} when the sub-agent's turn was`, async () => {
      const { sessionId, turnId } = await calling(2, "sessions_spawn");
      const waited = await child(turnId, 2);
      const background = await child(turnId, 3, { mode: "background" });
      for (const { turn } of [waited, background]) await commit(turn.turnId, 1, { tainted });
      assert.equal((await stepsOf(turnId))[0]?.result?.untainted, tainted ? undefined : true);
      await finish(turnId);
      const told = (await claimed(sessionId)).messages.find(({ from }) => from?.origin === "subagent");
      assert.equal(told?.from?.tainted, tainted ? true : undefined);
    });
  }

  // design: 003.31
  test("a resumed one continues in its own session, and only a child can be resumed", async () => {
    const { turnId } = await calling(3, "sessions_spawn");
    const first = await child(turnId, 2);
    await commit(first.turn.turnId, 1);
    const again = await child(turnId, 3, { resume: first.sessionId });
    assert.equal(again.sessionId, first.sessionId);
    const other = await running();
    const refused = await spawn(turnId, 4, { resume: other.sessionId });
    assert.equal(refused.status, "refused");
  });

  // design: 004.11
  test("stop includes awaited sub-agents at every depth, and background ones on request", async () => {
    const { sessionId, turnId } = await calling(2, "sessions_spawn");
    const waited = await child(turnId, 2);
    const background = await child(turnId, 3, { mode: "background" });
    const toolCalls = [{ callId: "call-2", tool: "sessions_spawn", class: "idempotent" as const, input: "{}" }];
    await commit(waited.turn.turnId, 1, { toolCalls, finish: null });
    const below = await child(waited.turn.turnId, 2);
    const ids = (turns: { turnId: string }[]) => turns.map((each) => each.turnId).sort();
    const first = await gateway.request(store.turnCancel, { sessionId, queued: false });
    assert.deepEqual(ids(first.turns), ids([{ turnId }, waited.turn, below.turn]));
    // As after a crash between two levels.
    await sql.query("UPDATE parley.turns SET cancel_requested = false WHERE id = $1", [below.turn.turnId]);
    const again = await gateway.request(store.turnCancel, { sessionId, queued: false });
    assert.deepEqual(ids(again.turns), ids(first.turns));
    assert.equal((await core.request(store.turnGet, { turnId: below.turn.turnId })).cancelRequested, true);
    const all = await gateway.request(store.turnCancel, { sessionId, queued: false, background: true });
    assert.ok(ids(all.turns).includes(background.turn.turnId));
  });

  test("one started while its parent is being stopped is stopped as well", async () => {
    const { sessionId, turnId } = await calling(1, "sessions_spawn");
    await gateway.request(store.turnCancel, { sessionId, queued: false });
    const { turn } = await child(turnId, 2);
    await finish(turnId);
    assert.equal((await core.request(store.turnGet, { turnId: turn.turnId })).cancelRequested, true);
    await assert.rejects(spawn(turnId, 2, { maxChildren: 9 }), failsWith("CONFLICT"));
  });

  test("clearing a sub-agent's queue keeps the task that its parent waits for", async () => {
    const { turnId } = await calling(1, "sessions_spawn");
    const started = await spawn(turnId, 2);
    assert.ok(started.status === "started");
    const { cancelledQueued } = await gateway.request(store.turnCancel, { sessionId: started.sessionId, queued: true });
    assert.equal(cancelledQueued, 0);
    await claimed(started.sessionId);
  });

  test("a stopping parent and an ending child do not deadlock", async () => {
    for (let round = 0; round < 15; round++) {
      const { sessionId, turnId } = await calling(2, "sessions_spawn");
      const [one, two] = [await child(turnId, 2), await child(turnId, 3, { mode: "background" })];
      await park(turnId, [2]);
      const ended = (turn: ClaimedTurn) => commit(turn.turnId, 1);
      await Promise.all([
        gateway.request(store.turnCancel, { sessionId, queued: true, background: round % 2 === 0 }),
        ended(one.turn),
        ended(two.turn),
        claim(sessionId),
      ]);
      await finish(turnId);
    }
  });
});

describe("approvals", () => {
  test("a call has one question, also when requested repeatedly, and another call has another", async () => {
    const { turnId } = await calling(1);
    const first = await ask(turnId, 2);
    const again = await ask(turnId, 2);
    assert.deepEqual([again.approval.id, again.seq], [first.approval.id, null]);
    const other = await ask(turnId, 2, { callHash: "b".repeat(64) });
    assert.notEqual(other.approval.id, first.approval.id);
    await assert.rejects(ask(turnId, 2, { callHash: "c".repeat(64), id: first.approval.id }), failsWith("CONFLICT"));
  });

  test("the first decision counts, also in a race, and the turn reads it with the call", async () => {
    const { sessionId, turnId } = await calling(1);
    const { approval } = await ask(turnId, 2);
    const answers = await Promise.all([decide(approval.id, true), decide(approval.id.toLowerCase(), false)]);
    assert.deepEqual(answers.map(({ outcome }) => outcome).sort(), ["already", "decided"]);
    const decided = answers.find(({ outcome }) => outcome === "decided")?.approval?.state;
    assert.equal((await claimed(sessionId, "resumed")).turn.openSteps[0]?.approval?.state, decided);
  });

  // design: 002.35
  test("an expired question is a denial that cannot be changed", async () => {
    const { turnId, sessionId } = await calling(1);
    const { approval } = await ask(turnId, 2);
    await sql.query("UPDATE parley.approvals SET expires_at = now() WHERE id = $1", [approval.id]);
    assert.equal((await decide(approval.id)).outcome, "expired");
    assert.equal((await claimed(sessionId, "resumed")).turn.openSteps[0]?.approval?.state, "expired");
  });

  test("a question of an ended turn is expired, not listed, and cannot be approved", async () => {
    const { sessionId, turnId } = await calling(1);
    const { approval } = await ask(turnId, 2);
    const pending = async () =>
      (await gateway.request(store.approvalList, { sessionId, pending: true, limit: 10 })).approvals.length;
    assert.equal(await pending(), 1);
    await finish(turnId);
    assert.equal(await pending(), 0);
    assert.equal((await decide(approval.id)).outcome, "expired");
  });

  test("sends a question to the owner's most recent address", async () => {
    const replyTo = { channel: "telegram", account: "main", conversation: "owner-is-here" };
    await put(randomUUID(), "I am here", { replyTo, conversation: "owner-is-here" });
    const { turnId } = await calling(1, "exec", { role: "guest" });
    await ask(turnId, 2, { toOwner: { text: "May I?", expiresInMs: 60_000 } });
    const { rows } = await sql.query("SELECT conversation FROM parley.outbox WHERE turn_id = $1", [turnId]);
    assert.deepEqual(rows, [{ conversation: "owner-is-here" }]);
  });

  test("stores a question only an owner can answer exactly when an owner has an address", async () => {
    await sql.query("UPDATE parley.inbox SET reply_to = NULL WHERE trust = 'owner'");
    const { turnId } = await calling(1, "exec", { replyTo: null });
    const question = {
      ...fenced(),
      turnId,
      n: 2,
      id: "OWNER1",
      tool: "exec",
      callHash: "d".repeat(64),
      summary: "rm x",
      reason: "a rule",
      expiresInMs: 60_000,
      outgoing: [],
      toOwner: { text: "May I?", expiresInMs: 60_000 },
      ownerOnly: true,
    };
    assert.deepEqual(await core.request(store.approvalRequest, question), { approval: null, seq: null });
    const replyTo = { channel: "telegram", account: "main", conversation: "owner-came" };
    await put(randomUUID(), "I am here", { replyTo, conversation: "owner-came" });
    const asked = await core.request(store.approvalRequest, { ...question, ...fenced() });
    assert.equal(asked.approval?.id, "OWNER1");
    const { rows } = await sql.query("SELECT conversation FROM parley.outbox WHERE turn_id = $1", [turnId]);
    assert.deepEqual(rows, [{ conversation: "owner-came" }]);
  });

  test("approves only the one call when the approval cannot cover others", async () => {
    const { turnId, sessionId } = await calling(1);
    const authorization = { input: "{}", notes: [], rules: "a", askedByHook: false };
    const rules = { list: "allow" as const, rules: ["exec(rm x)"] };
    const once = await ask(turnId, 2, { authorization: { ...authorization, always: null } });
    const repeated = await ask(turnId, 2, {
      authorization: { ...authorization, always: rules },
      callHash: "b".repeat(64),
    });
    for (const [{ approval }, always] of [
      [once, false],
      [repeated, true],
    ] as const) {
      assert.equal(approval.mayAlways, always);
      const { rows } = await sql.query<{ body: string }>(
        "SELECT body FROM parley.events WHERE session_id = $1 AND type = 'approval.requested' ORDER BY seq",
        [sessionId],
      );
      const shown = rows.map(({ body }) => JSON.parse(body) as { approvalId: string; mayAlways: boolean });
      assert.equal(shown.find(({ approvalId }) => approvalId === approval.id)?.mayAlways, always);
      const request = { id: approval.id, allow: true, always: true, by: "owner" };
      assert.equal((await gateway.request(store.approvalDecide, request)).approval?.always, always);
    }
  });

  test("gives a repeated request of a decision its first outcome, and another decision of the same call none", async () => {
    const { turnId } = await calling(1);
    const { approval } = await ask(turnId, 2);
    const decision = { opId: randomUUID(), id: approval.id, allow: true, always: false, by: "owner" };
    const outcome = async (opId: string) =>
      (await gateway.request(store.approvalDecide, { ...decision, opId })).outcome;
    const opIds = [decision.opId, decision.opId, randomUUID(), decision.opId];
    const outcomes: string[] = [];
    for (const opId of opIds) outcomes.push(await outcome(opId));
    assert.deepEqual(outcomes, ["decided", "decided", "already", "decided"]);
  });

  test("returns additions of a decision with the call and refuses contradictory ones", async () => {
    const { turnId, sessionId } = await calling(1);
    const { approval } = await ask(turnId, 2);
    const answer = { id: approval.id, always: false, by: "owner" };
    const updatedInput = '{"command":"ls"}';
    for (const wrong of [
      { allow: true, always: true, updatedInput },
      { allow: false, updatedInput },
      { allow: true, message: "no" },
      { allow: true, interrupt: true },
    ]) {
      await assert.rejects(gateway.request(store.approvalDecide, { ...answer, ...wrong }), failsWith("INVALID_INPUT"));
    }
    await gateway.request(store.approvalDecide, { ...answer, allow: true, updatedInput });
    assert.equal((await claimed(sessionId, "resumed")).turn.openSteps[0]?.approval?.updatedInput, updatedInput);
    const denied = await calling(1);
    const { approval: second } = await ask(denied.turnId, 2);
    const reason = { allow: false, message: "not now", interrupt: true };
    await gateway.request(store.approvalDecide, { ...answer, id: second.id, ...reason });
    const { approval: stored } = (await claimed(denied.sessionId, "resumed")).turn.openSteps[0] ?? {};
    assert.deepEqual([stored?.state, stored?.message, stored?.interrupt], ["denied", "not now", true]);
    const { rows } = await sql.query<{ body: string }>(
      "SELECT body FROM parley.events WHERE session_id = $1 AND type = 'approval.decided'",
      [denied.sessionId],
    );
    const event = JSON.parse(rows[0]?.body ?? "{}") as { message?: string };
    assert.equal(event.message, "not now", "the log of the session has the reason too");
  });
});

test("returns the arguments that hooks gave a call to the leader that resumes it", async () => {
  const { turnId, sessionId } = await calling(1);
  const authorization = { input: '{"command":"ls"}', notes: ["seen"], rules: "r", askedByHook: false, always: null };
  const authorize = () => core.request(store.stepAuthorize, { ...fenced(), turnId, n: 2, authorization });
  await authorize();
  await core.request(store.turnPark, { ...fenced(), turnId, waitingFor: [2], wakeAt: new Date().toISOString() });
  const { openSteps } = (await claimed(sessionId, "resumed")).turn;
  assert.deepEqual(openSteps[0]?.authorization, authorization);
  const result = {
    type: "tool_result" as const,
    id: openSteps[0]?.callId ?? "",
    name: "exec",
    content: "",
    isError: false,
  };
  await core.request(store.stepSettle, { ...fenced(), turnId, n: 2, state: "done", result });
  await assert.rejects(authorize(), failsWith("CONFLICT"));
});

describe("questions to people", () => {
  function askPeople(turnId: string, n: number) {
    return core.request(store.questionAsk, {
      ...fenced(),
      turnId,
      n,
      question: "Which one?",
      options: ["red", "blue"],
      expiresInMs: 60_000,
      outgoing: [],
    });
  }

  const inboxState = async (inboxId: string) => (await gateway.request(store.inboxGet, { inboxId })).state;

  async function answerOf(turnId: string): Promise<string | undefined> {
    return (await stepsOf(turnId))[0]?.result?.content;
  }

  /** This many calls that wait for a person, in a session with this key. */
  async function asking(key: string, count = 1) {
    const { sessionId } = await put(key, "go");
    const { turn } = await claimed(sessionId);
    await commit(turn.turnId, 1, { toolCalls: callsToAsk(count), finish: null });
    for (let n = 2; n < 2 + count; n++) await askPeople(turn.turnId, n);
    return { sessionId, turnId: turn.turnId };
  }

  const callsToAsk = (count: number) =>
    Array.from({ length: count }, (_, index) => ({
      callId: `call-${index + 2}`,
      tool: "ask_user",
      class: "idempotent" as const,
      input: "{}",
    }));

  test("the next message of equal trust is the answer and wakes the turn, and a guest's is not", async () => {
    const key = randomUUID();
    const { sessionId, turnId } = await asking(key);
    assert.deepEqual(await park(turnId, [2]), { parked: true });
    await put(key, "not mine to say", { role: "guest", contact: { id: "9" } });
    assert.equal(await answerOf(turnId), undefined);
    const { inboxId } = await put(key, "2");
    assert.equal(await answerOf(turnId), "The person answered: blue");
    assert.equal(await inboxState(inboxId), "claimed");
    assert.equal((await claimed(sessionId, "resumed")).turn.turnId, turnId);
  });

  test("waits for questions, approvals and awaited sub-agents count once", async () => {
    const { sessionId, turnId } = await asking(randomUUID(), 6);
    const child = await spawn(turnId, 6);
    assert.ok(child.status === "started");
    const work = (await claimed(child.sessionId)).turn.turnId;
    await commit(work, 1, { toolCalls: callsToAsk(1), finish: null });
    const allowed = await ask(turnId, 4);
    const open = await ask(turnId, 5);
    const below = await ask(work, 2);
    const at = (second: number) => new Date(Date.UTC(2026, 0, 1) + second * 1_000).toISOString();
    const asked = async (n: number, from: number, until: number) => {
      await sql.query("UPDATE parley.questions SET asked_at = $3, expires_at = $4 WHERE turn_id = $1 AND n = $2", [
        turnId,
        n,
        at(from),
        at(until),
      ]);
    };
    // Two overlapping ones, of which one was answered; the others expired immediately.
    await asked(2, 0, 3_600);
    await sql.query("UPDATE parley.steps SET finished_at = $2 WHERE turn_id = $1 AND n = 2", [turnId, at(60)]);
    await asked(3, 30, 90);
    for (const n of [4, 5, 6, 7]) await asked(n, 0, 0);
    const decided = async (id: string, from: number, decidedAt: number | null, expires: number) => {
      await sql.query("UPDATE parley.approvals SET requested_at = $2, decided_at = $3, expires_at = $4 WHERE id = $1", [
        id,
        at(from),
        decidedAt === null ? null : at(decidedAt),
        at(expires),
      ]);
    };
    await decided(allowed.approval.id, 120, 130, 3_600);
    await decided(below.approval.id, 125, 140, 3_600);
    await decided(open.approval.id, 200, null, 205);
    assert.equal((await claimed(sessionId, "resumed")).turn.waitedMs, (90 + 20 + 5) * 1_000);
  });

  test("a question of a stopped turn does not take the answer to a later question", async () => {
    const key = randomUUID();
    const stopped = await asking(key, 2);
    await finish(stopped.turnId);
    const { turnId } = await asking(key);
    await put(key, "red");
    assert.equal(await answerOf(turnId), "The person answered: red");
  });

  test("a redelivery becomes the answer after a crash, but not for a later question", async () => {
    const key = randomUUID();
    const early = inbound({ parts: [{ type: "text", text: "1" }] });
    const { sessionId } = await put(key, "go");
    const { turn } = await claimed(sessionId);
    await commit(turn.turnId, 1, { toolCalls: callsToAsk(1), finish: null });
    const { inboxId } = await gateway.request(store.inboxPut, { message: early, sessionKey: key });
    await askPeople(turn.turnId, 2);
    assert.equal((await gateway.request(store.inboxPut, { message: early, sessionKey: key })).duplicate, true);
    assert.equal(await answerOf(turn.turnId), undefined, "it was received before the question");
    assert.equal(await inboxState(inboxId), "queued");
    // The state after a store crashed between storing a message and making it the answer.
    await sql.query("UPDATE parley.inbox SET received_at = now() WHERE id = $1", [inboxId]);
    assert.equal((await gateway.request(store.inboxPut, { message: early, sessionKey: key })).duplicate, true);
    assert.equal(await answerOf(turn.turnId), "The person answered: red");
    assert.equal(await inboxState(inboxId), "claimed");
  });
});

describe("a session's queue for people", () => {
  test("a queue of long texts is listed as far as it fits in one reply", async () => {
    const { sessionId } = await running();
    const { rows: found } = await sql.query<{ key: string }>("SELECT key FROM parley.sessions WHERE id = $1", [
      sessionId,
    ]);
    const key = found[0]?.key ?? "";
    for (let n = 0; n < 60; n++) await put(key, "\u0001".repeat(2_000));
    const { rows, more } = await gateway.request(store.inboxList, { sessionId, limit: 100 });
    assert.ok(rows.length > 0 && rows.length < 60);
    assert.equal(more, true);
  });

  test("a row that becomes steering publishes a hint with its trust", async () => {
    const key = randomUUID();
    const { sessionId } = await put(key, "go");
    await claimed(sessionId);
    const { inboxId } = await put(key, "and this");
    const steers = Promise.withResolvers<string>();
    const hints = core.subscribe(inboxReady, {}, (hint) => {
      if (hint.sessionId === sessionId && hint.steers !== undefined) steers.resolve(hint.steers);
    });
    await core.flush();
    await gateway.request(store.inboxEdit, { inboxId, change: { do: "mode", mode: "steer" } });
    assert.equal(await steers.promise, "owner");
    hints.close();
  });
});

describe("session data", () => {
  const compacting = (
    turn: { sessionId: string; turnId: string },
    version: number,
    spent: { model: string | null; costMicros: number | null },
  ) =>
    core.request(store.sessionCompact, {
      ...fenced(),
      sessionId: turn.sessionId,
      turnId: turn.turnId,
      view: {
        version,
        keepFirstTo: 0,
        fromSeq: 2,
        summary: "so far",
        lastRequest: null,
        clearedBefore: 0,
        trigger: "demand",
        strategy: "summarize",
      },
      trigger: "demand",
      tokensBefore: 10,
      tokensAfter: 5,
      usage,
      ...spent,
    });

  test("a view record made from an older one is refused, and a new one clears the prefix", async () => {
    const { sessionId, turnId } = await running();
    const hash = "f".repeat(64);
    await core.request(store.prefixPut, { hash, content: "{}" });
    await commit(turnId, 1, { prefixHash: hash, finish: null, parts: [{ type: "text", text: "a" }] });
    assert.equal((await claimed(sessionId, "resumed")).session.prefixHash, hash);
    const compact = (version: number) => compacting({ sessionId, turnId }, version, { model: "test", costMicros: 7 });
    const outcomes = await Promise.allSettled([compact(1), compact(1)]);
    assert.deepEqual(outcomes.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
    await assert.rejects(compact(3), failsWith("CONFLICT"));
    const { session, messages } = await claimed(sessionId, "resumed");
    assert.deepEqual([session.view?.version, session.prefixHash], [1, null]);
    assert.ok(messages.every(({ seq }) => seq >= 2));
  });

  test("finish sets the prefix of an aborted answer", async () => {
    const hash = randomBytes(32).toString("hex");
    await core.request(store.prefixPut, { hash, content: "{}" });
    const conversation = randomUUID();
    const prefixOf = async () => {
      const { sessionId } = await put(conversation, "go on");
      const { turn, session } = await claimed(sessionId);
      return { turnId: turn.turnId, prefixHash: session.prefixHash };
    };
    const first = await prefixOf();
    await finish(first.turnId, { parts: [{ type: "text", text: "Cut" }], model: "test", prefixHash: hash });
    const second = await prefixOf();
    await finish(second.turnId);
    assert.deepEqual([first.prefixHash, second.prefixHash, (await prefixOf()).prefixHash], [null, hash, hash]);
  });

  test("an unreferenced prefix is deleted 30 days after it was last stored", async () => {
    const names = Array.from({ length: 4 }, () => randomBytes(32).toString("hex"));
    const [used = "", unused = "", toldAgain = "", young = ""] = names;
    const tell = (hash: string) => core.request(store.prefixPut, { hash, content: "{}" });
    for (const hash of names) await tell(hash);
    const { turnId } = await running();
    await commit(turnId, 1, { prefixHash: used });
    await sql.query("UPDATE parley.prefixes SET created_at = now() - interval '31 days' WHERE hash = ANY($1)", [
      [used, unused, toldAgain],
    ]);
    await tell(toldAgain);
    const database = openDatabase(stack.postgres.ownerUrl, 1, () => undefined);
    cleanup.add(() => database.pool.end());
    await deleteExpired(database, {
      opRetentionHours: 24,
      eventRetentionDays: 90,
      auditRetentionDays: 0,
      checkpointDays: 0,
    });
    const contents = await Promise.all(names.map((hash) => core.request(store.prefixGet, { hash })));
    assert.deepEqual(
      contents.map(({ content }) => content !== null),
      [true, false, true, true],
      `${unused} alone is gone, ${young} is not`,
    );
  });

  test("a prefix is stored once under its hash, and an unknown hash has none", async () => {
    const hash = randomUUID().replaceAll("-", "").repeat(2);
    await core.request(store.prefixPut, { hash, content: "first" });
    await core.request(store.prefixPut, { hash, content: "second" });
    assert.deepEqual(await core.request(store.prefixGet, { hash }), { content: "first" });
    assert.deepEqual(await core.request(store.prefixGet, { hash: "0".repeat(64) }), { content: null });
  });

  // design: 003.22b
  test("overrides are patched, null removes one, and the next commit returns them", async () => {
    const { sessionId, turnId } = await running();
    const update = (overrides: InputOf<typeof store.sessionUpdate>["overrides"]) =>
      gateway.request(store.sessionUpdate, { sessionId, overrides });
    await update({ effort: "high", model: "x" });
    const { session } = await update({ effort: null, permissionMode: "plan" });
    assert.deepEqual(session?.overrides, { model: "x", permissionMode: "plan" });
    const { overrides } = await commit(turnId, 1, { finish: null });
    assert.deepEqual(overrides, { model: "x", permissionMode: "plan" });
  });

  test("calls and costs are summed by day and model, and unpriced calls are counted separately", async () => {
    const { sessionId, turnId } = await running();
    await commit(turnId, 1, { finish: null, note: [{ type: "text", text: "go on" }] });
    const { cost } = await commit(turnId, 2, { costMicros: undefined });
    assert.deepEqual(cost, { micros: 100, unpricedCalls: 1 });
    const today = new Date().toISOString().slice(0, 10);
    const { rows } = await core.request(store.usageReport, { sinceDay: today, sessionId });
    assert.equal(rows.length, 1);
    assert.deepEqual([rows[0]?.calls, rows[0]?.cost], [2, { micros: 100, unpricedCalls: 1 }]);
    assert.equal(rows[0]?.usage.inputTokens, 20);
  });

  test("a summary's call counts in its day's usage, and a compaction without a call does not", async () => {
    const turn = await running();
    const { sessionId, turnId } = turn;
    await commit(turnId, 1, {});
    await compacting(turn, 1, { model: "summary-1", costMicros: 40 });
    await compacting(turn, 2, { model: "summary-1", costMicros: null });
    await compacting(turn, 3, { model: null, costMicros: null });
    const { rows } = await core.request(store.usageReport, {
      sinceDay: new Date().toISOString().slice(0, 10),
      sessionId,
    });
    const summaries = rows.filter(({ model }) => model === "summary-1");
    assert.deepEqual(
      summaries.map((row) => [row.calls, row.cost, row.usage.inputTokens, row.usage.cacheReadTokens]),
      [[2, { micros: 40, unpricedCalls: 1 }, 2 * usage.inputTokens, 2 * usage.cacheReadTokens]],
    );
    assert.equal(
      rows.reduce((sum, { calls }) => sum + calls, 0),
      3,
    );
  });
});

test("PostgreSQL reported no deadlock during these tests", async () => {
  await stack.store.close();
  // A backend flushes its statistics when it exits.
  await pollUntil(async () => {
    const { rowCount } = await sql.query(
      "SELECT FROM pg_stat_activity WHERE usename = 'parley_store' AND datname = current_database()",
    );
    return rowCount === 0;
  }, "the end of the store's connections");
  const { rows } = await sql.query("SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()");
  assert.deepEqual(rows, [{ deadlocks: 0 }]);
});
