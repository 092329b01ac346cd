// Sessions that people switch between, on a real PostgreSQL and a real bus.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { sessionBound, store, textOf, type InputOf } from "@parley/contracts";
import type { Bus } from "@parley/bus";
import { Cleanup, type StoreStack } from "@parley/testing";
import { Client } from "pg";
import { openDatabase } from "../src/db/database.ts";
import { deleteExpiredSessions } from "../src/retention/sessions.ts";
import {
  failsWith,
  openStoreFixture,
  saying,
  stepOf,
  untilLocked,
  usage,
  type StoreFixture,
} from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;
let stack: StoreStack;
let gateway: Bus;
let core: Bus;

before(async () => {
  fixture = await openStoreFixture(cleanup);
  ({ stack, gateway, core } = fixture);
});
after(() => cleanup[Symbol.asyncDispose]());

/** The API's caller is the owner, and no answer is sent. */
const overApi = { channel: "http", account: "default", conversation: "c", contact: { id: "owner" }, replyTo: null };

/** Sends a message on a route and returns its session. */
async function say(route: string, text: string): Promise<string> {
  return (await fixture.put(route, { ...overApi, ...saying(text) })).sessionId;
}

const begin = (sessionId: string) => fixture.started(sessionId);
const commit = (turnId: string, n: number, more: Partial<InputOf<typeof store.stepCommit>> = {}) =>
  core.request(store.stepCommit, stepOf(fixture.fenced(), turnId, n, more));

/** Sends a message and answers it. */
async function talk(route: string, text: string): Promise<string> {
  const sessionId = await say(route, text);
  const turn = await begin(sessionId);
  await commit(turn.turnId, turn.nextStep);
  return sessionId;
}

async function textsOf(sessionId: string): Promise<string[]> {
  const page = await core.request(store.sessionMessages, { sessionId, afterSeq: 0, limit: 100 });
  return page.messages.map(({ parts }) => textOf(parts));
}

const open = (route: string, more: object = {}) =>
  gateway.request(store.sessionOpen, { opId: randomUUID(), route, ...more });

test("a route uses its new session from the next message, and the old one can be resumed", async () => {
  const old = await talk("route:a", "first");
  const bound = Promise.withResolvers<{ route: string; sessionId: string }>();
  gateway.subscribe(sessionBound, {}, (payload) => bound.resolve(payload));
  await gateway.flush();
  const { session, previousId } = await open("route:a", { title: "Plans" });
  assert.equal(previousId, old);
  assert.deepEqual(await bound.promise, { route: "route:a", sessionId: session.sessionId, seq: 0 });
  assert.equal(await say("route:a", "second"), session.sessionId);
  const found = await gateway.request(store.sessionGet, { key: "route:a" });
  assert.equal(found.session?.sessionId, session.sessionId);
  const back = await gateway.request(store.sessionBind, { route: "route:a", session: old });
  assert.equal(back.outcome, "found");
  assert.equal(await say("route:a", "third"), old);
});

// design: 002.37b
test("the workspace of a session is chosen before its first message, and its route's next session has it", async () => {
  const route = "route:workspace";
  const { session } = await open(route);
  const choose = (sessionId: string, workspace: string | null) =>
    gateway.request(store.sessionUpdate, { sessionId, overrides: { workspace } });
  assert.equal((await choose(session.sessionId, "project")).session?.overrides.workspace, "project");
  await talk(route, "first");
  for (const other of ["elsewhere", null]) {
    await assert.rejects(choose(session.sessionId, other), /before its first message/);
  }
  await choose(session.sessionId, "project");
  const next = await open(route);
  assert.notEqual(next.session.sessionId, session.sessionId);
  assert.deepEqual(next.session.overrides, { workspace: "project" });
  assert.deepEqual((await choose(next.session.sessionId, null)).session?.overrides, {});
});

test("a repeated operation id opens one session, and an unused one is not replaced", async () => {
  await talk("route:b", "x");
  const request = { opId: randomUUID(), route: "route:b" };
  const first = await gateway.request(store.sessionOpen, request);
  const again = await gateway.request(store.sessionOpen, request);
  assert.equal(again.session.sessionId, first.session.sessionId);
  const { session, previousId } = await open("route:b", { title: "Named now" });
  assert.equal(session.sessionId, first.session.sessionId);
  assert.equal(session.title, "Named now");
  assert.equal(previousId, null);
});

test("the previous session is archived only on request, and a message makes it active again", async () => {
  const old = await talk("route:c", "x");
  await open("route:c", { archive: true });
  const status = async () => (await gateway.request(store.sessionGet, { sessionId: old })).session?.status;
  assert.equal(await status(), "archived");
  await gateway.request(store.sessionBind, { route: "route:other", session: old });
  assert.equal(await status(), "active");
  await gateway.request(store.sessionUpdate, { sessionId: old, status: "archived" });
  assert.equal(await say("route:other", "hello again"), old);
  assert.equal(await status(), "active");
});

// design: 002.17, 002.18
test("a session is found by id, last digits, key and title, and an ambiguous title finds none", async () => {
  const id = await talk("route:d", "x");
  await gateway.request(store.sessionUpdate, { sessionId: id, title: "Straße 7" });
  for (const session of [id, id.slice(-8), "route:d", "straße 7"]) {
    const bound = await gateway.request(store.sessionBind, { route: "route:d2", session });
    assert.equal(bound.outcome === "found" && bound.session.sessionId, id, session);
  }
  assert.equal(
    (await gateway.request(store.sessionBind, { route: "route:d2", session: "straße" })).outcome,
    "not_found",
  );
  const second = await talk("route:d3", "y");
  await gateway.request(store.sessionUpdate, { sessionId: second, title: "STRASSE 8" });
  await gateway.request(store.sessionUpdate, { sessionId: id, title: "strasse 8" });
  const ambiguous = await gateway.request(store.sessionBind, { route: "route:d2", session: "Strasse 8" });
  assert.equal(ambiguous.outcome, "ambiguous");
  assert.equal(await say("route:d2", "still there"), id);
});

test("a session has its first message as title when it is shown before it is listed", async () => {
  const sessionId = await talk("route:e1", "shown at once");
  const { session } = await gateway.request(store.sessionGet, { sessionId });
  assert.equal(session?.title, "shown at once");
});

test("a session without a title gets the first 60 characters of its first message", async () => {
  const id = await talk("route:e", `Plan   the\n${"very ".repeat(30)}long trip\u0000`);
  const { sessions } = await gateway.request(store.sessionList, { limit: 200, text: "PLAN THE VERY" });
  const title = sessions.find(({ sessionId }) => sessionId === id)?.title ?? "";
  assert.match(title, /^Plan the very very .*…$/);
  assert.ok(title.length <= 60, title);
});

test("the list is paged by the last session's id, and filtered by status and title", async () => {
  const ids: string[] = [];
  for (const name of ["one", "two", "three"]) {
    const id = await talk(`route:f-${name}`, `paged ${name}`);
    ids.unshift(id);
  }
  const first = await gateway.request(store.sessionList, { limit: 2, text: "paged" });
  const rest = await gateway.request(store.sessionList, {
    limit: 2,
    text: "paged",
    before: first.sessions.at(-1)?.sessionId,
  });
  assert.deepEqual(
    [...first.sessions, ...rest.sessions].map(({ sessionId }) => sessionId),
    ids,
  );
  await gateway.request(store.sessionUpdate, { sessionId: ids[1] ?? "", status: "archived" });
  const archived = await gateway.request(store.sessionList, { limit: 200, text: "paged", status: "archived" });
  assert.deepEqual(
    archived.sessions.map(({ sessionId }) => sessionId),
    [ids[1]],
  );
});

// design: 003.22
test("keeps every rule when lists of a session change at the same time", async () => {
  const sessionId = await talk("route:rules", "hello");
  const names = Array.from({ length: 8 }, (_, index) => `exec(run ${index})`);
  const change = (list: "allow" | "deny", action: "add" | "remove", ...rules: string[]) =>
    gateway.request(store.sessionUpdate, { opId: randomUUID(), sessionId, rules: { list, action, rules } });
  await Promise.all(names.map((name) => change("allow", "add", name)));
  await Promise.all([
    change("deny", "add", "exec(rm *)"),
    ...names.slice(2).map((name) => change("allow", "remove", name)),
  ]);
  const { session } = await change("allow", "add", names[0] ?? "");
  assert.deepEqual(session?.overrides.allow?.toSorted(), names.slice(0, 2));
  assert.deepEqual(session.overrides.deny, ["exec(rm *)"]);
  const { session: cleared } = await change("allow", "remove", ...names);
  assert.equal(cleared?.overrides.allow, undefined);
});

test("a fork has the same messages, overrides and prefix, and leaves the original unchanged", async () => {
  const original = await talk("route:g", "remember 7");
  const hash = "a".repeat(64);
  await core.request(store.prefixPut, { hash, content: "{}" });
  await gateway.request(store.sessionUpdate, { sessionId: original, overrides: { effort: "low" } });
  const sessionId = await say("route:g", "and 8");
  const turn = await begin(sessionId);
  await commit(turn.turnId, turn.nextStep, { prefixHash: hash });
  const { session } = await gateway.request(store.sessionFork, {
    opId: randomUUID(),
    sessionId: original,
    route: "route:g",
  });
  assert.equal(session.title, "remember 7 (fork)");
  assert.equal(session.overrides.effort, "low");
  assert.deepEqual(await textsOf(session.sessionId), await textsOf(original));
  const view = { epoch: fixture.epoch, knownSeq: 0 };
  const [mine, theirs] = await Promise.all([
    core.request(store.sessionView, { ...view, sessionId: session.sessionId }),
    core.request(store.sessionView, { ...view, sessionId: original }),
  ]);
  assert.equal(mine.session.prefixHash, hash);
  const bare = (messages: typeof mine.messages) => messages.map((message) => ({ ...message, turnId: "" }));
  assert.deepEqual(bare(mine.messages), bare(theirs.messages));
  assert.equal(await talk("route:g", "only in the fork"), session.sessionId);
  assert.equal((await textsOf(original)).includes("only in the fork"), false);
});

// design: 003.30
test("a fork excludes a running turn and turns beyond its position", async () => {
  const original = await talk("route:h", "one");
  const until = (await gateway.request(store.sessionGet, { sessionId: original })).session?.seq ?? 0;
  await talk("route:h", "two");
  await say("route:h", "three");
  const running = await begin(original);
  const call = { callId: "c1", tool: "read", class: "pure" as const, input: "{}" };
  await commit(running.turnId, running.nextStep, { toolCalls: [call], finish: null, stopReason: "tool_use" });
  const whole = await gateway.request(store.sessionFork, { opId: randomUUID(), sessionId: original });
  assert.deepEqual(await textsOf(whole.session.sessionId), ["one", "answer", "two", "answer"]);
  const early = await gateway.request(store.sessionFork, { opId: randomUUID(), sessionId: original, atSeq: until });
  assert.deepEqual(await textsOf(early.session.sessionId), ["one", "answer"]);
});

/** Removes everything up to `seq` from the view. */
async function compactTo(sessionId: string, seq: number) {
  const last = await core.request(store.sessionView, { epoch: fixture.epoch, sessionId, knownSeq: 0 });
  const view = {
    version: 1,
    keepFirstTo: 0,
    fromSeq: seq + 1,
    summary: "It was old.",
    lastRequest: null,
    clearedBefore: 0,
    trigger: "demand",
    strategy: "summarize",
  };
  await core.request(store.sessionCompact, {
    ...fixture.fenced(),
    sessionId,
    turnId: last.turnId ?? "",
    view,
    trigger: "demand",
    tokensBefore: 10,
    tokensAfter: 5,
    usage,
    costMicros: null,
    model: null,
  });
  return view;
}

const seqOf = async (sessionId: string) =>
  (await gateway.request(store.sessionGet, { sessionId })).session?.seq ?? assert.fail("there is no such session");

test("a fork of a compacted session has its view record and only the visible messages", async () => {
  const original = await talk("route:i", "old");
  const from = await seqOf(original);
  await talk("route:i", "new");
  const view = await compactTo(original, from);
  const { session } = await gateway.request(store.sessionFork, { opId: randomUUID(), sessionId: original });
  assert.deepEqual(await textsOf(session.sessionId), ["new", "answer"]);
  const forked = await core.request(store.sessionView, {
    epoch: fixture.epoch,
    sessionId: session.sessionId,
    knownSeq: 0,
  });
  assert.deepEqual(forked.session.view, view);
});

// design: 003.27
test("the log contains the summary of a compaction", async () => {
  const sessionId = await talk("route:summary", "old");
  await compactTo(sessionId, await seqOf(sessionId));
  const { events } = await gateway.request(store.eventList, { sessionId, afterSeq: 0, limit: 100 });
  const compacted = events.find((event) => event.type === "compacted");
  assert.equal(compacted?.summary, "It was old.");
});

test("missing sessions cannot be forked, and sub-agents' sessions cannot be bound", async () => {
  const fork = { opId: randomUUID(), sessionId: randomUUID() };
  await assert.rejects(gateway.request(store.sessionFork, fork), failsWith("NOT_FOUND"));
  const parent = await say("route:j", "delegate");
  const turn = await begin(parent);
  const call = { callId: "c1", tool: "sessions_spawn", class: "idempotent" as const, input: "{}" };
  await commit(turn.turnId, turn.nextStep, { toolCalls: [call], finish: null, stopReason: "tool_use" });
  const spawned = await core.request(store.turnSpawn, {
    opId: randomUUID(),
    epoch: fixture.epoch,
    turnId: turn.turnId,
    n: turn.nextStep + 1,
    mode: "wait",
    profile: "reader",
    // The model's text may contain what PostgreSQL does not store.
    title: "A look\0around",
    parts: [{ type: "text", text: "look" }],
    maxChildren: 5,
    resume: null,
    announce: "queue",
  });
  assert.equal(spawned.status, "started");
  const child = spawned.sessionId;
  const byTitle = { route: "route:j2", session: "a look around" };
  assert.equal((await gateway.request(store.sessionBind, byTitle)).outcome, "not_found");
  const all = await gateway.request(store.sessionList, { limit: 200 });
  assert.equal(
    all.sessions.some(({ sessionId }) => sessionId === child),
    false,
  );
  const children = await gateway.request(store.sessionList, { limit: 200, parentId: parent });
  assert.deepEqual(
    children.sessions.map(({ sessionId, title }) => [sessionId, title]),
    [[child, "A look around"]],
  );
});

test("a sub-agent gets its parent's permission mode, deny rules and ask rules with each task", async () => {
  const parent = await say("route:restricted", "delegate");
  const turn = await begin(parent);
  const call = { tool: "sessions_spawn", class: "idempotent" as const, input: "{}" };
  const toolCalls = ["c1", "c2"].map((callId) => ({ ...call, callId }));
  await commit(turn.turnId, turn.nextStep, { toolCalls, finish: null, stopReason: "tool_use" });
  const overridesOfChild = async (n: number, resume: string | null) => {
    const spawned = await core.request(store.turnSpawn, {
      opId: randomUUID(),
      epoch: fixture.epoch,
      turnId: turn.turnId,
      n: turn.nextStep + n,
      mode: "wait",
      profile: "reader",
      title: "A look around",
      parts: [{ type: "text", text: "look" }],
      maxChildren: 5,
      resume,
      announce: "queue",
    });
    assert.equal(spawned.status, "started");
    const { session } = await gateway.request(store.sessionGet, { sessionId: spawned.sessionId });
    return { child: spawned.sessionId, overrides: session?.overrides };
  };
  const restrict = (overrides: InputOf<typeof store.sessionUpdate>["overrides"]) =>
    gateway.request(store.sessionUpdate, { sessionId: parent, overrides });

  const restrictions = { permissionMode: "plan" as const, deny: ["exec"], ask: ["write"] };
  await restrict({ ...restrictions, model: "other", allow: ["read"] });
  const { child, overrides } = await overridesOfChild(1, null);
  assert.deepEqual(overrides, restrictions);

  await restrict({ permissionMode: "delegate", deny: null });
  await gateway.request(store.sessionUpdate, { sessionId: child, overrides: { allow: ["ls"] } });
  assert.deepEqual((await overridesOfChild(2, child)).overrides, { ask: ["write"], allow: ["ls"] });
});

test("a program's sub-agent starts with the definition in its parent's session, else not", async () => {
  const parent = await say("route:program", "delegate");
  const turn = await begin(parent);
  const call = { tool: "sessions_spawn", class: "idempotent" as const, input: "{}" };
  const toolCalls = ["c1", "c2", "c3"].map((callId) => ({ ...call, callId }));
  await commit(turn.turnId, turn.nextStep, { toolCalls, finish: null, stopReason: "tool_use" });
  const spawn = (n: number) =>
    core.request(store.turnSpawn, {
      opId: randomUUID(),
      epoch: fixture.epoch,
      turnId: turn.turnId,
      n: turn.nextStep + n,
      mode: "background",
      profile: "clerk",
      ofProgram: true,
      title: "Beans",
      parts: [{ type: "text", text: "count" }],
      maxChildren: 5,
      resume: null,
      reuse: true,
      announce: "queue",
    });
  const stateOf = async (sessionId: string) =>
    (await core.request(store.sessionView, { epoch: fixture.epoch, sessionId, knownSeq: 0 })).session;
  const define = (overrides: InputOf<typeof store.sessionUpdate>["overrides"]) =>
    gateway.request(store.sessionUpdate, { sessionId: parent, overrides });

  assert.deepEqual(await spawn(1), { status: "refused", reason: "the program that defines clerk has ended" });
  const clerk = { description: "Counts", prompt: "Count." };
  const programTools = [{ name: "mcp__shop__add", description: "Adds", inputSchema: { type: "object" as const } }];
  await define({ programAgents: { clerk }, programTools });
  const first = await spawn(1);
  assert.equal(first.status, "started");
  const { overrides } = await stateOf(first.sessionId);
  assert.deepEqual(overrides, { programAgent: { ...clerk, base: null }, programTools });
  await gateway.request(store.turnCancel, { sessionId: first.sessionId, queued: true });
  const second = await spawn(2);
  assert.equal(second.status, "started");
  assert.notEqual(second.sessionId, first.sessionId);

  const { session: fork } = await gateway.request(store.sessionFork, { opId: randomUUID(), sessionId: parent });
  assert.deepEqual((await stateOf(fork.sessionId)).overrides, { start: "fork" });
  await define({ programAgents: null, programTools: null });
  assert.equal((await spawn(3)).status, "refused");
});

// design: 002.23, 003.30c
test("retention deletes archived idle sessions completely, never main or busy ones", async () => {
  const database = openDatabase(stack.postgres.storeUrl, 1, () => undefined);
  try {
    const [main, old, fresh, busy] = [
      await talk("main", "main"),
      await talk("route:k1", "old"),
      await talk("route:k2", "fresh"),
      await talk("route:k3", "busy"),
    ];
    const fork = await gateway.request(store.sessionFork, { opId: randomUUID(), sessionId: old });
    await say("route:k3", "still waiting");
    for (const sessionId of [main, old, busy]) {
      await gateway.request(store.sessionUpdate, { sessionId, status: "archived" });
    }
    await database.pool.query(
      "UPDATE parley.sessions SET status = 'archived', updated_at = now() - interval '3 days' WHERE id = ANY($1::uuid[])",
      [[main, old, busy]],
    );
    const settings = { retention_days: 2, call_retention_days: 0, max_sessions: 0, max_messages: 0 };
    assert.deepEqual(await deleteExpiredSessions(database, settings), { sessions: 1, messages: 0 });
    const there = async (sessionId: string) =>
      (await gateway.request(store.sessionGet, { sessionId })).session !== null;
    assert.deepEqual(await Promise.all([main, old, fresh, busy].map(there)), [true, false, true, true]);
    // A fork does not depend on its original.
    assert.deepEqual(await textsOf(fork.session.sessionId), ["old", "answer"]);
    assert.notEqual(await say("route:k1", "begins again"), old);
  } finally {
    await database.pool.end();
  }
});

/** Settings that allow this number of sessions less than there are. */
async function keepingAllBut(database: ReturnType<typeof openDatabase>, count: number) {
  const { rows } = await database.pool.query<{ count: number }>(
    "SELECT count(*)::int FROM parley.sessions WHERE parent_id IS NULL",
  );
  return { retention_days: 0, call_retention_days: 0, max_sessions: (rows[0]?.count ?? 0) - count, max_messages: 0 };
}

// design: 002.23b
test("retention deletes the least recently used sessions above the maximum, never main", async () => {
  const database = openDatabase(stack.postgres.storeUrl, 1, () => undefined);
  try {
    const [main, oldest, newer] = [
      await talk("main", "main"),
      await talk("route:m1", "oldest"),
      await talk("route:m2", "newer"),
    ];
    await database.pool.query(
      `UPDATE parley.sessions SET updated_at = now() - CASE id WHEN $1 THEN interval '30 days' ELSE interval '20 days' END
       WHERE id = ANY($2::uuid[])`,
      [main, [main, oldest]],
    );
    const settings = await keepingAllBut(database, 1);
    assert.deepEqual(await deleteExpiredSessions(database, settings), { sessions: 1, messages: 0 });
    const there = async (sessionId: string) =>
      (await gateway.request(store.sessionGet, { sessionId })).session !== null;
    assert.deepEqual(await Promise.all([main, oldest, newer].map(there)), [true, false, true]);
  } finally {
    await database.pool.end();
  }
});

// design: 002.23b
test("retention above the maximum keeps a busy session until it has ended", async () => {
  const database = openDatabase(stack.postgres.storeUrl, 1, () => undefined);
  try {
    const busy = await say("route:n1", "still at work");
    const turn = await begin(busy);
    await database.pool.query("UPDATE parley.sessions SET updated_at = now() - interval '40 days' WHERE id = $1", [
      busy,
    ]);
    const settings = await keepingAllBut(database, 1);
    assert.deepEqual(await deleteExpiredSessions(database, settings), { sessions: 0, messages: 0 });
    await commit(turn.turnId, turn.nextStep);
    await database.pool.query("UPDATE parley.sessions SET updated_at = now() - interval '40 days' WHERE id = $1", [
      busy,
    ]);
    assert.deepEqual(await deleteExpiredSessions(database, settings), { sessions: 1, messages: 0 });
    assert.equal((await gateway.request(store.sessionGet, { sessionId: busy })).session, null);
  } finally {
    await database.pool.end();
  }
});

// design: 002.23b
test("retention above the maximum keeps a session that is used while it runs", async () => {
  const database = openDatabase(stack.postgres.storeUrl, 1, () => undefined);
  const holder = new Client({ connectionString: stack.postgres.ownerUrl });
  await holder.connect();
  try {
    const [first, second] = [await talk("route:u1", "first"), await talk("route:u2", "second")];
    await talk("route:u3", "third");
    await database.pool.query(
      `UPDATE parley.sessions SET updated_at = now() - CASE id WHEN $1 THEN interval '60 days' ELSE interval '50 days' END
       WHERE id = ANY($2::uuid[])`,
      [first, [first, second]],
    );
    const settings = await keepingAllBut(database, 2);
    // Both are chosen, and the retention waits for the lock of the first one.
    await holder.query("BEGIN");
    await holder.query("UPDATE parley.sessions SET updated_at = now() WHERE id = $1", [first]);
    const deleting = deleteExpiredSessions(database, settings);
    await untilLocked(fixture.sql, 1);
    await talk("route:u2", "still here");
    await holder.query("COMMIT");
    assert.deepEqual(await deleting, { sessions: 0, messages: 0 });
    assert.deepEqual(await textsOf(second), ["second", "answer", "still here", "answer"]);
  } finally {
    await Promise.all([database.pool.end(), holder.end()]);
  }
});

// design: 002.23c
test("retention deletes the oldest messages of a long session outside of its view", async () => {
  const database = openDatabase(stack.postgres.storeUrl, 1, () => undefined);
  try {
    const long = await talk("route:l1", "one");
    for (const text of ["two", "three", "four"]) await talk("route:l1", text);
    const unseenTo = await seqOf(long);
    await talk("route:l1", "five");
    await compactTo(long, unseenTo);
    const whole = await talk("route:l2", "one");
    for (const text of ["two", "three", "four"]) await talk("route:l2", text);
    const settings = { retention_days: 0, call_retention_days: 0, max_sessions: 0, max_messages: 6 };
    await deleteExpiredSessions(database, settings);
    assert.deepEqual(await textsOf(long), ["three", "answer", "four", "answer", "five", "answer"]);
    assert.equal((await textsOf(whole)).length, 8, "the view contains all of it");
    await deleteExpiredSessions(database, { ...settings, max_messages: 1 });
    assert.deepEqual(await textsOf(long), ["five", "answer"]);
  } finally {
    await database.pool.end();
  }
});

test("finds sessions by words of their messages, with the newest place", async () => {
  const said = 'The cormorant dives near the "old\npier" at noon';
  const first = await talk("find:a", said);
  await say("find:b", "nothing of interest");
  const find = (text: string, more: object = {}) =>
    gateway.request(store.sessionList, { limit: 50, text, messages: true, ...more });
  for (const text of ["cormorant", "PIER cormo", "dives", "noon pier"]) {
    const { sessions, matches } = await find(text);
    assert.deepEqual([text, sessions.map(({ sessionId }) => sessionId)], [text, [first]]);
    assert.equal(matches?.length, 1);
    assert.equal(matches[0]?.seq, 1);
    assert.equal(matches[0]?.excerpt, said.replace("\n", " "));
  }
  // In the title, which is the beginning of the first message, but not the beginning of a word.
  assert.deepEqual((await find("ormorant")).matches, []);
  // Words of the stored format are not words of the message.
  assert.deepEqual((await find("type")).sessions, []);
  assert.deepEqual((await find("???")).sessions, []);
  assert.deepEqual((await find("cormorant", { messages: false })).matches, undefined);
});

test("stores a message whose words are too many for the index of words", async () => {
  const words = Array.from({ length: 60_000 }, (_, index) => index.toString(36));
  const sessionId = await talk("find:long", `kingfisher ${words.join(" ")} \u{20000}-\u{20001} \0 end`);
  const { sessions } = await gateway.request(store.sessionList, { limit: 5, text: "kingfisher", messages: true });
  assert.deepEqual(
    sessions.map((session) => session.sessionId),
    [sessionId],
  );
});

test("filters sessions by channel, person and activity", async () => {
  const place = { channel: "signal", account: "main", conversation: "9" };
  const ada = { ...place, contact: { id: "+49", name: 'Ada "L"' }, replyTo: place };
  const { sessionId } = await fixture.put("filter:a", { ...ada, ...saying("one") });
  const other = await say("filter:b", "two");
  const ids = async (more: object) => {
    const { sessions } = await gateway.request(store.sessionList, { limit: 200, ...more });
    return sessions.map((session) => session.sessionId);
  };
  assert.deepEqual(await ids({ channel: "signal" }), [sessionId]);
  for (const person of ["+49", "ada", '"l"']) assert.deepEqual(await ids({ person }), [sessionId]);
  assert.deepEqual(await ids({ person: "+4" }), []);
  assert.ok((await ids({ activity: "queued" })).includes(other));
  const { turnId, nextStep } = await begin(sessionId);
  assert.ok((await ids({ activity: "running" })).includes(sessionId));
  await commit(turnId, nextStep);
  assert.ok((await ids({ activity: "idle" })).includes(sessionId));
  assert.deepEqual(await ids({ activity: "waiting", channel: "signal" }), []);
});

test("lists what waits, takeovers and dead letters, and retries a dead letter once", async () => {
  const sessionId = await say("dead:a", "crashes every time");
  const { turnId } = await begin(sessionId);
  const claim = { ...fixture.fenced(), sessionId, knownSeq: 0, maxClaims: 1 };
  assert.equal((await core.request(store.turnClaim, claim)).status, "dead");
  const { deadLetters, takeovers, inbox } = await gateway.request(store.workReport, {});
  const letter = deadLetters.find((each) => each.sessionId === sessionId);
  assert.ok(letter !== undefined);
  assert.deepEqual([letter.turnId, letter.text], [turnId, "crashes every time"]);
  assert.equal(takeovers[0]?.epoch, fixture.epoch);
  const retry = () => gateway.request(store.inboxRetry, { inboxId: letter.inboxId });
  const { inboxId, repeated } = await retry();
  assert.equal(repeated, false);
  assert.deepEqual(await retry(), { inboxId, sessionId, repeated: true });
  const after = await gateway.request(store.workReport, {});
  assert.equal(after.inbox.count, inbox.count + 1);
  assert.ok(after.inbox.oldestAt !== null);
  assert.deepEqual(
    after.deadLetters.filter((each) => each.sessionId === sessionId),
    [],
  );
  const again = await begin(sessionId);
  await commit(again.turnId, again.nextStep);
  assert.equal((await textsOf(sessionId)).filter((text) => text === "crashes every time").length, 2);
  await assert.rejects(gateway.request(store.inboxRetry, { inboxId }), failsWith("NOT_FOUND"));
});

test("reports how long model calls took, and when their first token came", async () => {
  const sessionId = await say("timed:a", "quick");
  const today = new Date().toISOString().slice(0, 10);
  for (const [durationMs, firstTokenMs] of [
    [100, 10],
    [300, null],
    [200, 30],
  ] as const) {
    const { turnId, nextStep } = await begin(sessionId);
    await commit(turnId, nextStep, { timing: { durationMs, firstTokenMs } });
    const { spans } = await gateway.request(store.turnTrace, { turnId });
    const { firstTokenMs: reported } = spans.find(({ kind }) => kind === "model") ?? {};
    assert.equal(reported ?? null, firstTokenMs);
    await say("timed:a", "again");
  }
  const { latency } = await gateway.request(store.usageReport, { sinceDay: today, sessionId });
  const times = { calls: 3, p50Ms: 200, p95Ms: 300, firstTokenP50Ms: 10, firstTokenP95Ms: 30 };
  assert.deepEqual(
    latency.map((row) => ({ ...row, day: "" })),
    [{ day: "", ...times }],
  );
});
