// Claims of texts whose response was lost or came too late: the sender learns of every text that it claimed, and sends each once.
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

const owner = { replica: "gateway-1", incarnation: "one" };

async function put(account: string, conversation: string): Promise<string> {
  const outgoing = { address: { channel: "telegram", account, conversation }, text: "hello", expiresInMs: 600_000 };
  return (await fixture.gateway.request(store.outboxPut, { opId: randomUUID(), outgoing })).outboxId;
}

async function claim(account: string, more: Partial<InputOf<typeof store.outboxClaim>> = {}) {
  const { rows } = await fixture.gateway.request(store.outboxClaim, {
    opId: randomUUID(),
    owner,
    channel: "telegram",
    account,
    deduplicates: false,
    continues: true,
    limit: 10,
    claimMs: 60_000,
    unsettled: [],
    ...more,
  });
  return rows;
}

test("returns the claimed rows to both attempts of a claim that run at the same time", async () => {
  const outboxId = await put("at-once", "1");
  const locker = new Client({ connectionString: fixture.stack.postgres.ownerUrl });
  await locker.connect();
  await locker.query("BEGIN");
  await locker.query("SELECT FROM parley.outbox WHERE id = $1 FOR UPDATE", [outboxId]);
  const opId = randomUUID();
  const attempts = [claim("at-once", { opId }), claim("at-once", { opId })];
  await untilLocked(fixture.sql, 2);
  await locker.query("COMMIT");
  await locker.end();
  for (const rows of await Promise.all(attempts))
    assert.deepEqual(
      rows.map((row) => [row.outboxId, row.attempts]),
      [[outboxId, 0]],
    );
});

test("returns only the rows of the first attempt when a claim is repeated later", async () => {
  const opId = randomUUID();
  const first = await put("repeated", "1");
  assert.deepEqual(
    (await claim("repeated", { opId })).map((row) => row.outboxId),
    [first],
  );
  const second = await put("repeated", "2");
  assert.deepEqual(
    (await claim("repeated", { opId })).map((row) => row.outboxId),
    [first],
  );
  assert.deepEqual(
    (await claim("repeated", { unsettled: [first] })).map((row) => row.outboxId),
    [second],
  );
});

test("returns a claimed row again when its sender does not know it, also after the claim expired", async () => {
  const outboxId = await put("lost", "1");
  assert.equal((await claim("lost", { claimMs: 1 })).length, 1);
  const again = await claim("lost");
  assert.deepEqual(
    again.map((row) => [row.outboxId, row.attempts, row.interrupted]),
    [[outboxId, 0, false]],
  );
  assert.deepEqual(await claim("lost", { unsettled: [outboxId] }), [], "it is being sent");
  assert.deepEqual(await claim("lost", { owner: { replica: "gateway-2", incarnation: "two" } }), [], "not its own");
});

test("returns a row as interrupted when the claim expired while its sender was sending it", async () => {
  const outboxId = await put("slow", "1");
  assert.equal((await claim("slow", { claimMs: 1 })).length, 1);
  const again = await claim("slow", { unsettled: [outboxId] });
  assert.deepEqual(
    again.map((row) => [row.outboxId, row.interrupted]),
    [[outboxId, true]],
  );
});

test("lists the accounts whose texts are not settled, and no others", async () => {
  const outboxId = await put("open", "1");
  await put("also-open", "1");
  const openOf = async (...accounts: string[]) =>
    (await fixture.gateway.request(store.outboxOpen, { accounts })).accounts.toSorted();
  assert.deepEqual(await openOf("telegram:open", "telegram:quiet", "irc:open"), ["telegram:open"]);
  assert.equal((await claim("open")).length, 1);
  assert.deepEqual(await openOf("telegram:open"), ["telegram:open"], "its sender may die");
  const outcome = { state: "sent" as const, providerMessageId: null };
  await fixture.gateway.request(store.outboxSettle, { opId: randomUUID(), outboxId, owner, outcome });
  assert.deepEqual(await openOf("telegram:open", "telegram:also-open"), ["telegram:also-open"]);
});
