// Notices about a sub-agent's later results: ends of its background processes and of its own sub-agents. Each is delivered once, regardless
// of the order of events; on a real PostgreSQL.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { Bus } from "@parley/bus";
import { store, textOf, type ClaimedTurn, type InputOf, type Part, type Sender } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import type { Client } from "pg";
import { hashOf } from "../src/grants.ts";
import { openStoreFixture, saying, stepOf, type StoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;
let core: Bus;
let runner: Bus;
let sql: Client;

before(async () => {
  fixture = await openStoreFixture(cleanup);
  ({ core, runner, sql } = fixture);
});
after(() => cleanup[Symbol.asyncDispose]());

/** The key of the runner that owns the processes. */
const key = "k".repeat(43);
const fenced = () => fixture.fenced();
type Mode = InputOf<typeof store.turnSpawn>["mode"];

async function claim(sessionId: string): Promise<ClaimedTurn> {
  const claimed = await core.request(store.turnClaim, { ...fenced(), sessionId, knownSeq: 0, maxClaims: 5 });
  assert.ok(claimed.status === "started" || claimed.status === "resumed", claimed.status);
  return claimed.turn;
}

const commit = (turnId: string, more: Partial<InputOf<typeof store.stepCommit>> = {}) =>
  core.request(store.stepCommit, stepOf(fenced(), turnId, 1, { costMicros: 1, ...more }));

const cut = (turnId: string) =>
  core.request(store.turnFinish, {
    ...fenced(),
    turnId,
    parts: [],
    model: null,
    unsettled: "Cancelled",
    outgoing: [],
    finish: { state: "failed", exitReason: "error", text: "It broke." },
  });

/** A turn with one `sessions_spawn` call, its step 2. */
async function calling(turn: ClaimedTurn): Promise<ClaimedTurn> {
  const call = { callId: "call-2", tool: "sessions_spawn", class: "idempotent" as const, input: "{}" };
  await commit(turn.turnId, { toolCalls: [call], finish: null });
  return turn;
}

/** The owner's turn, which has started a sub-agent. */
async function owner(): Promise<ClaimedTurn> {
  const { sessionId } = await fixture.put(randomUUID(), saying("go"));
  return calling(await claim(sessionId));
}

async function subAgent(parent: ClaimedTurn, mode: Mode, title: string): Promise<ClaimedTurn> {
  const started = await core.request(store.turnSpawn, {
    ...fenced(),
    turnId: parent.turnId,
    n: 2,
    mode,
    profile: "reader",
    title,
    parts: [{ type: "text", text: "look there" }],
    maxChildren: 5,
    resume: null,
    announce: "queue",
  });
  assert.ok(started.status === "started");
  return claim(started.sessionId);
}

async function command(turn: ClaimedTurn, tainted = false): Promise<string> {
  const id = `${randomUUID()}@one`;
  await runner.request(store.processBegin, {
    id,
    grant: fixture.grant({ sessionId: turn.sessionId, turnId: turn.turnId, n: 1, tainted }),
    runner: "one#life",
    keyHash: hashOf(key),
    command: "make all",
    startedAt: new Date().toISOString(),
    notify: true,
  });
  return id;
}

const end = (id: string) => runner.request(store.processEnd, { id, key, text: "it has ended" });

interface Waiting {
  id: string;
  mode: string;
  trust: string;
  text: string;
  conversation: string | undefined;
  sender: Sender;
}

/** Queued input that starts or joins a turn. */
async function waiting({ sessionId }: ClaimedTurn): Promise<Waiting[]> {
  const { rows } = await sql.query<Omit<Waiting, "text"> & { parts: string; reply_to: string | null; sender: string }>(
    `SELECT id, mode, trust, parts, reply_to, sender FROM parley.inbox WHERE session_id = $1 AND state = 'queued' ORDER BY seq`,
    [sessionId],
  );
  return rows.map(({ id, mode, trust, parts, reply_to: replyTo, sender }) => ({
    id,
    mode,
    trust,
    text: textOf(JSON.parse(parts) as Part[]),
    conversation: replyTo === null ? undefined : (JSON.parse(replyTo) as { conversation: string }).conversation,
    sender: JSON.parse(sender) as Sender,
  }));
}
const texts = async (turn: ClaimedTurn) => (await waiting(turn)).map(({ text }) => text);
const idle = async ({ sessionId }: ClaimedTurn) =>
  (await core.request(store.turnClaim, { ...fenced(), sessionId, knownSeq: 0, maxClaims: 5 })).status === "empty";

const whose = (turn: ClaimedTurn, title = "look") =>
  `[for sub-agent "${title}" (${turn.sessionId}), which has finished; only that sub-agent can read omitted output]\n\n`;

for (const mode of ["wait", "background"] as const) {
  for (const [way, over] of [
    ["answers", (turn: ClaimedTurn) => commit(turn.turnId)],
    ["fails", (turn: ClaimedTurn) => cut(turn.turnId)],
  ] as const) {
    test(`an exit notice that a sub-agent (${mode}) has not read when it ${way} goes to the parent only`, async () => {
      const parent = await owner();
      const child = await subAgent(parent, mode, "look");
      await end(await command(child, true));
      const [own] = await waiting(child);
      assert.deepEqual(
        [own?.text, own?.mode, own?.trust],
        ["it has ended", "steer", "subagent"],
        "it would join its turn",
      );
      await over(child);
      assert.deepEqual(await waiting(child), []);
      assert.ok(await idle(child));
      const [heard, ...more] = (await waiting(parent)).filter(({ sender }) => sender.origin === "process");
      assert.deepEqual(more, []);
      assert.deepEqual(
        [
          heard?.id,
          heard?.text,
          heard?.mode,
          heard?.trust,
          heard?.conversation,
          heard?.sender.role,
          heard?.sender.tainted,
        ],
        [own?.id, `${whose(child)}it has ended`, "steer", "owner", "42", "owner", true],
      );
    });
  }

  test(`a process that ends after its sub-agent (${mode}) notifies the parent once`, async () => {
    const parent = await owner();
    const child = await subAgent(parent, mode, "look");
    const id = await command(child);
    await commit(child.turnId);
    assert.deepEqual(await end(id), { announced: true });
    assert.deepEqual(await end(id), { announced: true });
    assert.ok(await idle(child));
    const heard = (await texts(parent)).filter((text) => text.endsWith("it has ended"));
    assert.deepEqual(heard, [`${whose(child)}it has ended`]);
  });
}

test("a waiting parent gets the notice in the turn that its sub-agent's end wakes", async () => {
  const parent = await owner();
  const child = await subAgent(parent, "wait", "look");
  await core.request(store.turnPark, { ...fenced(), turnId: parent.turnId, waitingFor: [2], wakeAt: null });
  await end(await command(child));
  await commit(child.turnId);
  const resumed = await claim(parent.sessionId);
  const answer = `answer\n\n[sub-agent ${child.sessionId}]`;
  assert.deepEqual([resumed.turnId, resumed.openSteps[0]?.result?.content], [parent.turnId, answer]);
  const joining = { ...fenced(), turnId: parent.turnId, results: 1, skipped: null, notes: [], absorb: true };
  assert.equal((await core.request(store.turnAppend, joining)).inboxIds.length, 1);
});

test("a notice that a sub-agent or person has received is not delivered again", async () => {
  const parent = await owner();
  const child = await subAgent(parent, "background", "look");
  await end(await command(child));
  const joining = { ...fenced(), turnId: child.turnId, results: 0, skipped: null, notes: [], absorb: true };
  assert.equal((await core.request(store.turnAppend, joining)).inboxIds.length, 1);
  const later = await command(child);
  await end(later);
  await commit(child.turnId);
  assert.equal((await texts(parent)).filter((text) => text.endsWith("it has ended")).length, 1);
  await runner.request(store.processTold, { by: { key }, ids: [later] });
  assert.equal((await texts(parent)).filter((text) => text.endsWith("it has ended")).length, 0);
});

test("a notice goes up to the next working session and names its origin once", async () => {
  const top = await owner();
  const middle = await calling(await subAgent(top, "background", "middle"));
  const low = await subAgent(middle, "background", "low");
  const id = await command(low);
  await end(await command(low));
  await commit(low.turnId);
  assert.deepEqual(
    (await waiting(middle)).map(({ text, trust }) => [text.split("]")[0], trust]),
    [
      [`[sub-agent "low" (${low.sessionId}) has finished`, "subagent"],
      [whose(low, "low").split("]")[0], "subagent"],
    ],
  );
  await commit(middle.turnId, { n: 3, results: 1 });
  assert.deepEqual(await waiting(middle), []);
  await end(id);
  const heard = await waiting(top);
  assert.deepEqual(
    heard.map(({ text }) => text.replace(/\n+answer$/, "")).sort(),
    [
      `${whose(low, "low")}it has ended`,
      `${whose(low, "low")}it has ended`,
      `${whose(middle, "middle")}[sub-agent "low" (${low.sessionId}) has finished]`,
      `[sub-agent "middle" (${middle.sessionId}) has finished]`,
    ].sort(),
  );
  assert.deepEqual(new Set(heard.map(({ trust }) => trust)), new Set(["owner"]));
});

test("a sub-agent that ends after its parent is announced above it", async () => {
  const top = await owner();
  const middle = await calling(await subAgent(top, "wait", "middle"));
  const low = await subAgent(middle, "background", "low");
  await commit(middle.turnId, { n: 3, results: 1 });
  await commit(low.turnId);
  assert.ok(await idle(middle));
  assert.deepEqual(await texts(top), [
    `${whose(middle, "middle")}[sub-agent "low" (${low.sessionId}) has finished]\n\nanswer`,
  ]);
});

test("concurrent ends, claims and stops deliver each notice once without a deadlock", async () => {
  for (let round = 0; round < 24; round++) {
    const parent = await owner();
    const isParked = round % 2 === 0;
    const child = await subAgent(parent, round % 3 === 2 ? "background" : "wait", "look");
    const id = await command(child);
    const park = { ...fenced(), turnId: parent.turnId, waitingFor: [2], wakeAt: new Date().toISOString() };
    if (isParked) await core.request(store.turnPark, park);
    const stop = { sessionId: parent.sessionId, queued: false };
    await Promise.all([
      end(id),
      round % 3 === 0 ? cut(child.turnId) : commit(child.turnId),
      isParked
        ? core.request(store.turnClaim, { ...fenced(), sessionId: parent.sessionId, knownSeq: 0, maxClaims: 5 })
        : cut(parent.turnId),
      ...(round % 4 < 2 ? [fixture.gateway.request(store.turnCancel, stop)] : []),
    ]);
    assert.deepEqual(await waiting(child), []);
    assert.equal((await texts(parent)).filter((text) => text.endsWith("it has ended")).length, 1);
  }
  const { rows } = await sql.query("SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()");
  assert.deepEqual(rows, [{ deadlocks: 0 }]);
});
