// To-do lists of sessions, on a real PostgreSQL and a real bus.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { store, WireError, type Todo } from "@parley/contracts";
import type { Bus } from "@parley/bus";
import { Cleanup } from "@parley/testing";
import { openStoreFixture, type StoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;
let gateway: Bus;
let core: Bus;

before(async () => {
  fixture = await openStoreFixture(cleanup);
  ({ gateway, core } = fixture);
});
after(() => cleanup[Symbol.asyncDispose]());

const list: Todo[] = [
  { content: "Find it", status: "completed" },
  { content: "Fix it", status: "in_progress", activeForm: "Fixing it" },
];

async function opened(): Promise<string> {
  const { session } = await gateway.request(store.sessionOpen, { opId: randomUUID(), route: randomUUID() });
  return session.sessionId;
}

const put = (sessionId: string, todos: Todo[], more: object = {}) =>
  core.request(store.sessionTodos, { opId: randomUUID(), epoch: fixture.epoch, sessionId, todos, ...more });

async function kept(sessionId: string): Promise<Todo[] | undefined> {
  return (await gateway.request(store.sessionGet, { sessionId })).session?.todos;
}

test("stores the latest to-do list and clears it when the list is empty", async () => {
  const sessionId = await opened();
  assert.equal(await kept(sessionId), undefined);
  await put(sessionId, list);
  assert.deepEqual(await kept(sessionId), list);
  await put(sessionId, list.slice(1));
  assert.deepEqual(await kept(sessionId), list.slice(1));
  await put(sessionId, []);
  assert.equal(await kept(sessionId), undefined);
});

test("a repeated request after a newer one changes nothing", async () => {
  const sessionId = await opened();
  const opId = randomUUID();
  await put(sessionId, list, { opId });
  await put(sessionId, list.slice(1));
  await put(sessionId, list, { opId });
  assert.deepEqual(await kept(sessionId), list.slice(1));
});

test("a stale leader or an unknown session stores no list", async () => {
  const sessionId = await opened();
  await assert.rejects(put(sessionId, list, { epoch: fixture.epoch - 1 }), (error) =>
    WireError.is(error, "STALE_EPOCH"),
  );
  await assert.rejects(put(randomUUID(), list), (error) => WireError.is(error, "NOT_FOUND"));
  assert.equal(await kept(sessionId), undefined);
});

test("a fork begins with the list", async () => {
  const sessionId = await opened();
  await put(sessionId, list);
  const { session } = await gateway.request(store.sessionFork, { opId: randomUUID(), sessionId });
  assert.deepEqual(session.todos, list);
});
