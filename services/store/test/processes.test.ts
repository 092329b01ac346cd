// Background processes in the store: one exit notice per process, also with concurrent reports; on a real PostgreSQL.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { Bus } from "@parley/bus";
import { inboxReady, store, textOf, type InboundMessage, type InputOf, type Sender } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import type { Client } from "pg";
import { hashOf } from "../src/grants.ts";
import { failsWith, openStoreFixture, saying, type StoreFixture } from "./support/fixture.ts";

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

const fenced = () => fixture.fenced();

async function put(sessionKey: string, overrides: Partial<InboundMessage> = {}) {
  const place = { channel: "telegram", account: "main", conversation: overrides.conversation ?? "42" };
  return (await fixture.put(sessionKey, { ...place, replyTo: place, ...saying("go"), ...overrides })).sessionId;
}

async function claim(sessionId: string) {
  const answer = await core.request(store.turnClaim, { ...fenced(), sessionId, knownSeq: 0, maxClaims: 5 });
  assert.ok(answer.status === "started");
  return answer;
}

/** The key of the runner that owns the processes. */
const secret = "s".repeat(43);
const shownTo = ({ sessionId, turnId }: { sessionId: string; turnId: string }) => ({
  grant: fixture.grant({ sessionId, turnId, n: 1 }),
});

const finish = (turnId: string) =>
  core.request(store.turnFinish, {
    ...fenced(),
    turnId,
    parts: [],
    model: null,
    unsettled: "over",
    outgoing: [],
    finish: { state: "done", exitReason: "end_turn", text: "done" },
  });

/** A session whose first turn has started a process. */
async function begun(
  {
    tainted = false,
    turn,
    ...overrides
  }: Partial<InputOf<typeof store.processBegin>> & { tainted?: boolean; turn?: string } = {},
  said: Partial<InboundMessage> = {},
) {
  const key = randomUUID();
  const sessionId = await put(key, said);
  const { turnId } = (await claim(sessionId)).turn;
  const id = `${randomUUID()}@one`;
  const input = {
    id,
    grant: fixture.grant({ sessionId, turnId: turn ?? turnId, n: 1, tainted }),
    runner: "one#life",
    keyHash: hashOf(secret),
    command: "make all",
    startedAt: new Date().toISOString(),
    notify: true,
    ...overrides,
  };
  await runner.request(store.processBegin, input);
  return { key, sessionId, turnId, id };
}

interface Row {
  id: string;
  state: string;
  parts: string;
  reply_to: string | null;
  sender: string;
  trust: string;
  mode: string;
}

async function announcements(sessionId: string): Promise<Row[]> {
  const { rows } = await sql.query<Row>(
    "SELECT id, state, parts, reply_to, sender, trust, mode FROM parley.inbox WHERE session_id = $1 AND account = 'process'",
    [sessionId],
  );
  return rows;
}

const end = (id: string, text = "it has ended") => runner.request(store.processEnd, { id, key: secret, text });
const conversationOf = (row: Row | undefined) =>
  row?.reply_to == null ? null : (JSON.parse(row.reply_to) as { conversation: string }).conversation;

test("the end of a process is one inbox row, also with repeated and concurrent reports", async () => {
  const { sessionId, id } = await begun();
  const heard = Promise.withResolvers<string | undefined>();
  const hints = core.subscribe(inboxReady, {}, (hint) => {
    if (hint.sessionId === sessionId) heard.resolve(hint.steers);
  });
  await core.flush();
  const said = await Promise.all(Array.from({ length: 8 }, () => end(id)));
  assert.deepEqual(new Set(said.map(({ announced }) => announced)), new Set([true]));
  assert.deepEqual(await end(id, "something else"), { announced: true });
  const [row, ...more] = await announcements(sessionId);
  assert.deepEqual(more, []);
  assert.ok(row !== undefined);
  assert.equal(textOf(JSON.parse(row.parts) as never), "it has ended");
  assert.deepEqual([row.trust, row.mode, conversationOf(row)], ["owner", "steer", "42"]);
  const sender = JSON.parse(row.sender) as Sender;
  assert.deepEqual(
    [sender.origin, sender.role, sender.contact.id, sender.tainted],
    ["process", "owner", id, undefined],
  );
  assert.equal(await heard.promise, "owner", "it may join the running turn");
  hints.close();
});

test("a known end is not announced, whether it is marked before or after the report", async () => {
  const before = await begun();
  await runner.request(store.processTold, { by: shownTo(before), ids: [before.id] });
  assert.deepEqual(await end(before.id), { announced: false });
  assert.deepEqual(await announcements(before.sessionId), []);

  const later = await begun();
  await end(later.id);
  await runner.request(store.processTold, { by: shownTo(before), ids: [later.id] });
  assert.equal((await announcements(later.sessionId))[0]?.state, "queued", "another session cannot mark it");
  await runner.request(store.processTold, { by: shownTo(later), ids: [later.id, "unknown@one"] });
  assert.equal((await announcements(later.sessionId))[0]?.state, "cancelled");
});

test("a claimed exit notice is not cancelled", async () => {
  const { sessionId, turnId, id } = await begun();
  await end(id);
  await finish(turnId);
  const { turn } = await claim(sessionId);
  await runner.request(store.processTold, { by: shownTo({ sessionId, turnId }), ids: [id] });
  const [row] = await announcements(sessionId);
  assert.deepEqual([row?.state, turn.inboxIds], ["claimed", [row?.id]]);
  assert.deepEqual([turn.trust, turn.replyTo?.conversation], ["owner", "42"]);
});

test("a process with notifications off has no exit notice", async () => {
  const { sessionId, id } = await begun({ notify: false });
  assert.deepEqual(await end(id), { announced: false });
  assert.deepEqual(await announcements(sessionId), []);
});

test("a process of a tainted turn taints its exit notice", async () => {
  const { sessionId, turnId, id } = await begun({ tainted: true });
  await end(id);
  await finish(turnId);
  const { messages } = await claim(sessionId);
  assert.equal(messages.at(-1)?.from?.tainted, true);
});

test("the answer goes to the most recent address, and never from a private chat into a group", async () => {
  const moved = await begun();
  await put(moved.key, { conversation: "43" });
  await put(moved.key, { conversation: "group", direct: false });
  await put(moved.key, { conversation: "guest", role: "guest" });
  await put(moved.key, { conversation: "web", replyTo: null });
  await end(moved.id);
  assert.equal(conversationOf((await announcements(moved.sessionId))[0]), "43");

  const grouped = await begun({}, { conversation: "group", direct: false });
  await put(grouped.key, { conversation: "44" });
  await end(grouped.id);
  assert.equal(conversationOf((await announcements(grouped.sessionId))[0]), "group");

  const silent = await begun({}, { replyTo: null });
  await end(silent.id);
  assert.equal(conversationOf((await announcements(silent.sessionId))[0]), null);
});

test("processes of a lost runner are reported once, and a newer report prevents that", async () => {
  const dead = `dead#${randomUUID()}`;
  const [first, second] = [await begun({ runner: dead }), await begun({ runner: dead, command: 'say "hi"' })];
  const me = `me#${randomUUID()}`;
  const seenBy = async () => (await runner.request(store.processRenew, { runner: me, key: secret })).others;
  const seen = (await seenBy()).find((each) => each.runner === dead);
  assert.ok(seen !== undefined);
  const earlier = { ...seen, seenAt: new Date(Date.parse(seen.seenAt) - 1).toISOString() };
  const lose = async (gone: typeof seen) =>
    (await runner.request(store.processRenew, { runner: me, key: secret, gone: [gone] })).lost;
  assert.deepEqual(await lose(earlier), [{ runner: dead, processes: 0 }]);
  assert.deepEqual(await announcements(first.sessionId), []);

  const lost = (await Promise.all([lose(seen), lose(seen)])).flat();
  assert.ok(lost.some(({ processes }) => processes === 2));
  for (const { sessionId, id } of [first, second]) {
    const rows = await announcements(sessionId);
    assert.equal(rows.length, 1);
    assert.match(rows[0]?.parts ?? "", new RegExp(`${id}\\) is lost`));
  }
  assert.ok(!(await seenBy()).some((each) => each.runner === dead));
  await end(first.id);
  assert.equal((await announcements(first.sessionId)).length, 1, "the first report counts");
});

test("the list contains running processes with their replica, and no ended ones", async () => {
  const { sessionId, turnId, id } = await begun({ runner: "a#b#life", command: "sleep 1\0" });
  await runner.request(store.processBegin, {
    id: `${id}2`,
    grant: fixture.grant({ sessionId, turnId, n: 1 }),
    runner: "two#life",
    keyHash: hashOf(secret),
    command: "second",
    startedAt: new Date(Date.now() + 1).toISOString(),
    notify: true,
  });
  const listed = async () => (await fixture.gateway.request(store.processList, { sessionId })).processes;
  assert.deepEqual(
    (await listed()).map(({ id: each, replica, command }) => [each, replica, command]),
    [
      [id, "a#b", "sleep 1"],
      [`${id}2`, "two", "second"],
    ],
  );
  await end(id);
  assert.deepEqual(
    (await listed()).map(({ command }) => command),
    ["second"],
  );
});

test("a process of an unknown turn and the end of an unknown process are refused", async () => {
  await assert.rejects(begun({ turn: randomUUID() }), failsWith("NOT_FOUND"));
  await assert.rejects(end("nobody@nowhere"), failsWith("NOT_FOUND"));
});
