// Who may replace the preview of a turn that has ended, where every replica may send.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { store, type InputOf } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { Client } from "pg";
import { openStoreFixture, untilLocked, type StoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;
before(async () => {
  fixture = await openStoreFixture(cleanup);
});
after(() => cleanup[Symbol.asyncDispose]());

const one = { replica: "gateway-1", incarnation: "one" };
const two = { replica: "gateway-2", incarnation: "two" };

/** A running turn whose preview is open; `conversation` is that of the turn. */
async function opened(conversation: string, claimMs = 60_000) {
  const { turnId, sessionId } = await fixture.begun({ conversation });
  const key = { turnId, channel: "telegram", account: "main", conversation, owner: one };
  const address = { channel: "telegram", account: "main", conversation };
  const open = () => fixture.gateway.request(store.previewOpen, { opId: randomUUID(), ...key, address, claimMs });
  assert.deepEqual(await open(), { verdict: "open" });
  assert.deepEqual(await open(), { verdict: "never" }, "one preview a turn and conversation");
  const settle = (outcome: InputOf<typeof store.previewSettle>["outcome"]) =>
    fixture.gateway.request(store.previewSettle, { opId: randomUUID(), ...key, address, outcome });
  const finish = () =>
    fixture.core.request(store.turnFinish, {
      ...fixture.fenced(),
      turnId,
      parts: [],
      model: null,
      tainted: false,
      unsettled: "Interrupted",
      outgoing: [{ address, text: `answer to ${conversation}`, expiresInMs: 60_000 }],
      finish: { state: "done", exitReason: "end_turn", text: "x" },
    });
  return { key, settle, finish, sessionId };
}

async function claim(owner: typeof one) {
  const { rows } = await fixture.gateway.request(store.outboxClaim, {
    opId: randomUUID(),
    owner,
    channel: "telegram",
    account: "main",
    deduplicates: false,
    continues: true,
    previews: true,
    limit: 10,
    claimMs: 60_000,
  });
  for (const { outboxId } of rows) {
    const outcome = { state: "sent" as const, providerMessageId: "1" };
    await fixture.gateway.request(store.outboxSettle, { opId: randomUUID(), outboxId, owner, outcome });
  }
  return rows.map(({ text, replaces }) => [text, replaces]);
}

test("gives the answer to the process that edits the preview, until that has released it", async () => {
  const { settle, finish, key } = await opened("c1");
  await settle({ state: "sent", messageId: "77" });
  assert.deepEqual(await fixture.gateway.request(store.previewEdit, { ...key, claimMs: 60_000 }), { verdict: "edit" });
  const others = await fixture.gateway.request(store.previewEdit, { ...key, owner: two, claimMs: 60_000 });
  assert.deepEqual(others, { verdict: "never" });
  await finish();
  assert.deepEqual(await claim(two), []);
  await settle({ state: "released" });
  assert.deepEqual(await claim(two), [["answer to c1", "77"]]);
});

test("lists an account with a preview that no text replaces yet", async () => {
  const { settle } = await opened("listed");
  await settle({ state: "sent", messageId: "78" });
  const accounts = ["telegram:main", "telegram:other"];
  assert.deepEqual(await fixture.gateway.request(store.outboxOpen, { accounts }), { accounts: ["telegram:main"] });
});

test("opens a preview once when the opening is repeated, also while the first one runs", async () => {
  for (const concurrent of [false, true]) {
    const conversation = concurrent ? "at once" : "later";
    const { turnId } = await fixture.begun({ conversation });
    const address = { channel: "telegram", account: "main", conversation };
    const opening = { opId: randomUUID(), turnId, ...address, owner: one, address, claimMs: 60_000 };
    const open = () => fixture.gateway.request(store.previewOpen, opening);
    const verdicts = concurrent ? await Promise.all([open(), open()]) : [await open(), await open()];
    assert.deepEqual(verdicts, [{ verdict: "open" }, { verdict: "open" }], conversation);
  }
});

test("renews the lease of an account while the opening of a preview waits for its turn", async () => {
  const conversation = "waits";
  const { turnId } = await fixture.begun({ conversation });
  const name = "telegram:main";
  const { fence } = await fixture.gateway.request(store.leaseAcquire, { name, owner: "one", ttlMs: 60_000 });
  const locker = new Client({ connectionString: fixture.stack.postgres.ownerUrl });
  await locker.connect();
  await locker.query("BEGIN");
  await locker.query("SELECT FROM parley.turns WHERE id = $1 FOR UPDATE", [turnId]);
  const address = { channel: "telegram", account: "main", conversation };
  const opening = {
    opId: randomUUID(),
    turnId,
    ...address,
    owner: one,
    address,
    lease: { name, fence },
    claimMs: 60_000,
  };
  const opened = fixture.gateway.request(store.previewOpen, opening);
  await untilLocked(fixture.sql, 1);
  await fixture.gateway.request(store.leaseRenew, { name, fence, ttlMs: 60_000 });
  await locker.query("COMMIT");
  await locker.end();
  assert.deepEqual(await opened, { verdict: "open" });
  await fixture.gateway.request(store.leaseRelease, { name, fence });
});

test("lets texts of a conversation wait while the send of a preview is in flight", async () => {
  const { settle, finish } = await opened("c2");
  await finish();
  assert.deepEqual(await claim(one), []);
  await settle({ state: "sent", messageId: "78" });
  assert.deepEqual(await claim(one), [["answer to c2", "78"]]);
});

test("deletes a preview whose id arrives after the answer was sent without it", async () => {
  const { settle, finish } = await opened("c3", 1);
  await finish();
  // The claim of the first process has expired: its send counts as lost.
  assert.deepEqual(await claim(two), [["answer to c3", undefined]]);
  await settle({ state: "sent", messageId: "79" });
  assert.deepEqual(await claim(two), [["", "79"]]);
});

test("opens no preview for a turn that has ended, and none ahead of waiting texts", async () => {
  const { finish, settle, key } = await opened("c4");
  await settle({ state: "failed" });
  const address = { channel: "telegram", account: "main", conversation: "c4" };
  const open = async () =>
    fixture.gateway.request(store.previewOpen, { opId: randomUUID(), ...key, address, claimMs: 1_000 });
  await fixture.gateway.request(store.outboxPut, {
    opId: randomUUID(),
    outgoing: { address, text: "first", expiresInMs: 60_000 },
  });
  assert.deepEqual(await open(), { verdict: "later" });
  await finish();
  assert.deepEqual(await open(), { verdict: "never" });
});
