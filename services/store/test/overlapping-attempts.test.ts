// The bus sends a request again while the first attempt may still run: both take effect once and have the same result.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { store } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { Client } from "pg";
import { advisoryLocks } from "../src/db/advisory-locks.ts";
import { openStoreFixture, untilLocked, type StoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;

before(async () => {
  fixture = await openStoreFixture(cleanup);
});
after(() => cleanup[Symbol.asyncDispose]());

test("overlapping attempts of an operation have the same result", async () => {
  const path = "memory/overlap.md";
  const put = (opId: string, content: string) =>
    fixture.gateway.request(store.documentPut, { opId, path, content, author: "owner" });
  await put(randomUUID(), "one\n");
  const locker = new Client({ connectionString: fixture.stack.postgres.ownerUrl });
  await locker.connect();
  await locker.query("BEGIN");
  await locker.query("SELECT pg_advisory_xact_lock($1)", [advisoryLocks.documents]);
  const opId = randomUUID();
  const attempts = [put(opId, "two\n"), put(opId, "two\n")];
  await untilLocked(fixture.sql, 2);
  await locker.query("COMMIT");
  await locker.end();
  for (const { status, document } of await Promise.all(attempts))
    assert.deepEqual([status, document?.version], ["saved", 2]);
});

test("a repeated entry of the audit log is written once", async () => {
  const entry = { actor: "owner", action: "test.repeated", target: { name: "x" }, outcome: "requested" as const };
  const append = (opId?: string) =>
    fixture.gateway.request(store.auditAppend, opId === undefined ? entry : { opId, ...entry });
  const opId = randomUUID();
  await Promise.all([append(opId), append(opId)]);
  await append(opId);
  const list = { action: "test.repeated", limit: 10 };
  assert.equal((await fixture.gateway.request(store.auditList, list)).entries.length, 1);
  // A gateway of an older version sends no id.
  await append();
  const { entries } = await fixture.gateway.request(store.auditList, list);
  assert.deepEqual(
    entries.map(({ target }) => target),
    [entry.target, entry.target],
  );
});
