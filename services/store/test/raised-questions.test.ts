// Questions that a tool-runner raises for a call: recipients, accepted answers, and questions whose runner, call or time has ended. On a
// real PostgreSQL and a real bus.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { storeBlob, type Bus } from "@parley/bus";
import { callToken, inboxReady, store, WireError, type InboundMessage, type InputOf } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import type { Client } from "pg";
import { hashOf } from "../src/grants.ts";
import { failsWith, openStoreFixture, saying, stepOf, type StoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;
let gateway: Bus;
let core: Bus;
let runner: Bus;
let sql: Client;

before(async () => {
  fixture = await openStoreFixture(cleanup);
  ({ gateway, core, runner, sql } = fixture);
});
after(() => cleanup[Symbol.asyncDispose]());

const fenced = () => fixture.fenced();
const me = "runner-1#life";
/** Secrets of the claims. */
const secret = "s".repeat(43);
/** Grants of the calls, by turn. */
const grants = new Map<string, string>();

const put = (sessionKey: string, text: string, overrides: Partial<InboundMessage> = {}) =>
  fixture.put(sessionKey, { ...saying(text), ...overrides });

/** A turn with one call, step 2, that this runner has claimed. */
async function held(said: Partial<InboundMessage> = {}) {
  const key = randomUUID();
  const { sessionId } = await put(key, "go", said);
  const { turnId } = await fixture.started(sessionId);
  const toolCalls = [{ callId: "call-2", tool: "mcp__a__b", class: "once" as const, input: "{}" }];
  const call = stepOf(fenced(), turnId, 1, { stopReason: "tool_use", parts: [], toolCalls, finish: null });
  await core.request(store.stepCommit, call);
  const grant = fixture.grant({ sessionId, turnId, n: 2 });
  grants.set(turnId, grant);
  await runner.request(store.stepClaim, { ...fenced(), grant, runner: me, claimHash: hashOf(secret) });
  return { key, sessionId, turnId };
}

function raise(turnId: string, overrides: Partial<InputOf<typeof store.questionRaise>> = {}) {
  return runner.request(store.questionRaise, {
    ...fenced(),
    grant: grants.get(turnId) ?? "",
    claim: secret,
    question: "Which?",
    options: ["red", "blue"],
    expiresInMs: 60_000,
    heldForMs: 60_000,
    ...overrides,
  });
}

async function asked(turnId: string, overrides: Partial<InputOf<typeof store.questionRaise>> = {}): Promise<string> {
  const answer = await raise(turnId, overrides);
  assert.ok(answer.status === "asked");
  return answer.questionId;
}

const look = (turnId: string, questionId: string, heldForMs = 60_000) =>
  runner.request(store.questionLook, { grant: grants.get(turnId) ?? "", questionId, heldForMs });

const inboxState = async (inboxId: string) => (await gateway.request(store.inboxGet, { inboxId })).state;

test("the question goes to the turn's address, and the next message of equal trust answers it", async () => {
  const { key, sessionId, turnId } = await held();
  const told = Promise.withResolvers<number>();
  const heard = runner.subscribe(store.questionAnswered, { call: callToken(turnId, 2) }, ({ n }) => told.resolve(n));
  await runner.flush();
  const questionId = await asked(turnId);
  const { rows } = await sql.query<{ body: string }>("SELECT body FROM parley.outbox WHERE turn_id = $1", [turnId]);
  assert.deepEqual(
    rows.map(({ body }) => JSON.parse(body) as unknown),
    ["Which?\n1. red\n2. blue"],
  );
  const { events } = await gateway.request(store.eventList, { sessionId, afterSeq: 0, limit: 100 });
  assert.ok(events.some((event) => event.type === "question.asked" && event.question === "Which?"));
  const stranger = await put(key, "not mine to say", { role: "guest", contact: { id: "9" } });
  assert.deepEqual(await look(turnId, questionId), { state: "open", answer: null });
  const { inboxId } = await put(key, "  2 ");
  assert.equal(await told.promise, 2);
  heard.close();
  assert.deepEqual(await look(turnId, questionId), { state: "answered", answer: "  2 " });
  assert.deepEqual([await inboxState(inboxId), await inboxState(stranger.inboxId)], ["claimed", "queued"]);
  const { steps } = await core.request(store.turnGet, { turnId });
  assert.equal(steps.find(({ n }) => n === 2)?.result, null, "the runner settles the call");
});

test("an answer neither interrupts the asking turn nor is refused because it is busy", async () => {
  const { key, turnId } = await held();
  const first = await asked(turnId);
  assert.equal((await put(key, "red", { mode: "interrupt" })).runningTurnId, null);
  assert.equal((await look(turnId, first)).answer, "red");
  const second = await asked(turnId);
  assert.equal((await put(key, "blue", { mode: "reject" })).refused, false);
  assert.equal((await look(turnId, second)).answer, "blue");
  assert.equal((await put(key, "and now?", { mode: "reject" })).refused, true);
});

test("a call's next question replaces the previous one, and a repeated operation id does not", async () => {
  const { key, turnId } = await held();
  const first = await asked(turnId);
  const opId = randomUUID();
  const second = await asked(turnId, { opId, question: "And which now?" });
  assert.equal(await asked(turnId, { opId, question: "And which now?" }), second);
  await put(key, "this one");
  assert.equal((await look(turnId, first)).state, "over");
  assert.deepEqual(await look(turnId, second), { state: "answered", answer: "this one" });
  const { rows } = await sql.query("SELECT id FROM parley.outbox WHERE turn_id = $1", [turnId]);
  assert.equal(rows.length, 2);
});

test("a question takes no answer after its runner stopped waiting, crashed or timed out", async () => {
  for (const end of ["withdrawn", "runner gone", "expired", "settled"] as const) {
    const { key, turnId } = await held();
    const questionId = await asked(turnId);
    if (end === "withdrawn") assert.equal((await look(turnId, questionId, 0)).state, "over");
    if (end === "runner gone") {
      await sql.query("UPDATE parley.questions SET held_until = now() - interval '1 ms' WHERE turn_id = $1", [turnId]);
    }
    if (end === "expired") {
      await sql.query("UPDATE parley.questions SET expires_at = now() - interval '1 ms' WHERE turn_id = $1", [turnId]);
    }
    if (end === "settled") {
      const result = { type: "tool_result" as const, id: "call-2", name: "x", content: "unknown", isError: true };
      await core.request(store.stepSettle, { ...fenced(), turnId, n: 2, state: "unknown", result });
    }
    const { inboxId } = await put(key, "too late");
    assert.equal(await inboxState(inboxId), "queued", end);
    if (end === "expired" || end === "settled") assert.equal((await look(turnId, questionId)).state, "over", end);
  }
});

const failed = { type: "tool_result" as const, id: "call-2", name: "x", content: "unknown", isError: true };
const settle = (turnId: string) =>
  core.request(store.stepSettle, { ...fenced(), turnId, n: 2, state: "unknown", result: failed });
const cancel = (turnId: string) =>
  core.request(store.turnFinish, {
    ...fenced(),
    turnId,
    parts: [],
    model: null,
    unsettled: "Cancelled",
    outgoing: [],
    finish: { state: "cancelled", exitReason: "interrupted", text: "Stopped" },
  });

test("an unfetched answer is requeued when its call ends, and a fetched one is not", async () => {
  for (const [how, end] of Object.entries({ settle, cancel, ask: asked })) {
    for (const fetched of [false, true]) {
      const { key, turnId } = await held();
      const questionId = await asked(turnId);
      const { inboxId } = await put(key, "please do this instead");
      assert.equal(await inboxState(inboxId), "claimed");
      if (fetched) assert.equal((await look(turnId, questionId)).answer, "please do this instead");
      await end(turnId);
      const kept = how === "cancel" ? "done" : "claimed";
      const state = await inboxState(inboxId);
      assert.equal(
        state === "cancelled" ? "done" : state,
        fetched ? kept : "queued",
        `${how}, fetched ${String(fetched)}`,
      );
    }
  }
});

test("an answer that arrived before its question was withdrawn is requeued when the call ends", async () => {
  const { key, turnId } = await held();
  const questionId = await asked(turnId);
  const { inboxId } = await put(key, "please do this instead");
  assert.equal((await look(turnId, questionId, 0)).state, "answered");
  await settle(turnId);
  assert.equal(await inboxState(inboxId), "queued");
});

test("an answer in a race with the settlement is either fetched or requeued", async () => {
  for (let round = 0; round < 10; round++) {
    const { key, turnId } = await held();
    await asked(turnId);
    const [{ inboxId }] = await Promise.all([put(key, "yes"), settle(turnId)]);
    assert.equal(await inboxState(inboxId), "queued");
  }
  const { rows } = await sql.query("SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()");
  assert.deepEqual(rows, [{ deadlocks: 0 }]);
});

test("only the runner of an open call may raise questions for it", async () => {
  const { turnId } = await held();
  const conflict = (error: unknown) => WireError.is(error, "CONFLICT");
  await assert.rejects(raise(turnId, { claim: "o".repeat(43) }), failsWith("FENCED"));
  const result = { type: "tool_result" as const, id: "call-2", name: "x", content: "done", isError: false };
  await core.request(store.stepSettle, { ...fenced(), turnId, n: 2, state: "done", result });
  await assert.rejects(raise(turnId), conflict);
});

/** A separate conversation with its own thread. */
function place() {
  const conversation = randomUUID();
  const replyTo = { channel: "telegram", account: "main", conversation };
  return { key: `chat:${conversation}`, said: { ...replyTo, replyTo: { ...replyTo, replyToId: "77" } }, replyTo };
}

test("a job's question goes to its address, and the owner's next message there answers it", async () => {
  for (const mode of ["queue", "interrupt", "reject", "steer"] as const) {
    const chat = place();
    const busy = await put(chat.key, "something else", chat.said);
    await fixture.started(busy.sessionId);
    const { turnId } = await held({ origin: "cron", replyTo: chat.replyTo });
    const questionId = await asked(turnId);
    const { rows } = await sql.query("SELECT conversation FROM parley.outbox WHERE turn_id = $1", [turnId]);
    assert.deepEqual(rows, [{ conversation: chat.replyTo.conversation }]);
    const answer = await put(chat.key, "yes", { ...chat.said, mode });
    assert.deepEqual([answer.refused, answer.runningTurnId, answer.sessionId], [false, null, busy.sessionId], mode);
    assert.deepEqual(await look(turnId, questionId), { state: "answered", answer: "yes" });
    assert.equal((await gateway.request(store.inboxGet, { inboxId: answer.inboxId })).turn?.turnId, turnId);
    const second = await put(chat.key, "yes", chat.said);
    assert.equal(await inboxState(second.inboxId), "queued", "a second answer has no effect");
  }
});

test("a job's question takes no answer from other places, other people or for other jobs", async () => {
  const chat = place();
  const elsewhere = place();
  const { key, turnId } = await held({ origin: "cron", replyTo: chat.replyTo });
  const other = await held({ origin: "cron", replyTo: elsewhere.replyTo });
  const [questionId, others] = [await asked(turnId), await asked(other.turnId)];
  const user = { ...chat.said, role: "user" as const, contact: { id: "9" } };
  const unanswering = [
    await put(key, "in the job's own thread, from elsewhere"),
    await put(chat.key, "from a user", user),
    await put(chat.key, "from another job", { ...chat.said, origin: "cron" }),
    await put(chat.key, "answered nowhere", { ...chat.said, replyTo: null }),
  ];
  for (const { inboxId } of unanswering) assert.equal(await inboxState(inboxId), "queued");
  await put(elsewhere.key, "for the other one", elsewhere.said);
  assert.equal((await look(turnId, questionId)).state, "open");
  assert.equal((await look(other.turnId, others)).answer, "for the other one");
  const busy = await put(chat.key, "refused", { ...elsewhere.said, mode: "reject" });
  assert.equal(busy.refused, true, "other messages are handled as usual while the thread is busy");
});

test("a message answers the question when only the reply id and context of its address differ", async () => {
  const chat = place();
  const from = (context: string, more: Partial<InboundMessage> = {}) => ({
    ...chat.said,
    replyTo: { ...chat.said.replyTo, replyToId: context, context },
    ...more,
  });
  const user = { role: "user" as const, contact: { id: "9" } };
  const own = await held(from("asking", user));
  const questionId = await asked(own.turnId);
  const answer = await put(own.key, "red", from("answering", { ...user, mode: "interrupt" }));
  assert.equal(answer.runningTurnId, null);
  assert.equal((await look(own.turnId, questionId)).answer, "red");
  const elsewhere = { ...chat.replyTo, account: "other" };
  for (const mode of ["queue", "interrupt"] as const) {
    const job = await held({ origin: "cron", replyTo: { ...chat.replyTo, context: "of the job" } });
    const ofJob = await asked(job.turnId);
    await put(chat.key, "blue", from("elsewhere", { mode, replyTo: elsewhere }));
    assert.equal((await look(job.turnId, ofJob)).state, "open");
    await put(chat.key, "blue", from("answering", { mode }));
    assert.equal((await look(job.turnId, ofJob)).answer, "blue", mode);
  }
});

test("an answer names its files and makes them readable when it was sent in another session", async () => {
  const chat = place();
  const { sessionId, turnId } = await held({ origin: "cron", replyTo: chat.replyTo });
  const { sha256, mediaType, bytes } = await storeBlob(gateway, Buffer.from("a plan"));
  const file = { type: "blob" as const, sha256, mediaType, name: "plan.txt", bytes };
  for (const text of ["this one", ""]) {
    const questionId = await asked(turnId);
    await put(chat.key, text, { ...chat.said, parts: [{ type: "text", text }, file] });
    const named = `[attached: plan.txt, ${mediaType}, id ${sha256}]`;
    assert.equal((await look(turnId, questionId)).answer, text === "" ? named : `${text}\n${named}`);
  }
  const { rows } = await sql.query("SELECT sha256 FROM parley.blob_refs WHERE session_id = $1", [sessionId]);
  assert.deepEqual(rows, [{ sha256 }]);
});

test("an unfetched answer to a job is requeued in the thread where it was sent", async () => {
  const chat = place();
  const { turnId } = await held({ origin: "cron", replyTo: chat.replyTo });
  await asked(turnId);
  const { inboxId, sessionId } = await put(chat.key, "yes", chat.said);
  assert.equal(await inboxState(inboxId), "claimed");
  await settle(turnId);
  assert.equal(await inboxState(inboxId), "queued");
  await fixture.started(sessionId);
  assert.equal(await inboxState(inboxId), "claimed");
});

test("an answer to the agent's question in a job wakes the job's thread", async () => {
  const chat = place();
  const { sessionId, turnId } = await held({ origin: "cron", replyTo: chat.replyTo });
  const { step } = await core.request(store.questionAsk, {
    ...fenced(),
    turnId,
    n: 2,
    question: "Which?",
    options: ["red", "blue"],
    expiresInMs: 60_000,
    outgoing: [],
  });
  assert.equal(step.result, null);
  const woken = Promise.withResolvers<string>();
  const heard = core.subscribe(inboxReady, {}, (ready) => woken.resolve(ready.sessionId));
  await core.flush();
  await put(chat.key, "2", chat.said);
  assert.equal(await woken.promise, sessionId);
  heard.close();
  const { steps } = await core.request(store.turnGet, { turnId });
  assert.equal(steps.find(({ n }) => n === 2)?.result?.content, "The person answered: blue");
});

test("nobody is asked in turns without people, undelivered jobs, sub-agents or stopping turns", async () => {
  const silent = await raise((await held({ origin: "cron", replyTo: null })).turnId);
  assert.deepEqual(silent, { status: "nobody", reason: "the job has no delivery address" });
  for (const origin of ["webhook", "heartbeat", "process", "subagent"] as const) {
    const answer = await raise((await held({ origin })).turnId);
    assert.ok(answer.status === "nobody");
    assert.match(answer.reason, new RegExp(origin));
  }
  const child = await held();
  const parent = await held();
  await sql.query("UPDATE parley.turns SET parent_turn_id = $2, parent_step = 2, parent_mode = 'wait' WHERE id = $1", [
    child.turnId,
    parent.turnId,
  ]);
  const ofChild = await raise(child.turnId);
  assert.ok(ofChild.status === "nobody" && ofChild.reason.includes("sub-agent"));
  await gateway.request(store.turnCancel, { sessionId: parent.sessionId, queued: false });
  assert.equal((await raise(parent.turnId)).status, "nobody");
});

test("refuses questions of a call above the limit", async () => {
  const { turnId } = await held();
  await asked(turnId);
  await sql.query("UPDATE parley.questions SET raised = 60 WHERE turn_id = $1", [turnId]);
  assert.equal((await raise(turnId)).status, "nobody");
});
