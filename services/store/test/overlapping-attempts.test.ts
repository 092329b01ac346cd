// The bus sends a request again while the first attempt may still run: both take effect once and have the same result.
import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
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

test("a repeated change of a session does not undo a later one", async () => {
  const { gateway } = fixture;
  const route = `route:${randomUUID()}`;
  const { session } = await gateway.request(store.sessionOpen, { opId: randomUUID(), route });
  const { sessionId } = session;
  const change = (action: "add" | "remove") => {
    const input = { opId: randomUUID(), sessionId, rules: { list: "allow" as const, action, rules: ["exec(rm *)"] } };
    return () => gateway.request(store.sessionUpdate, input);
  };
  const add = change("add");
  await add();
  await change("remove")();
  assert.equal((await add()).session?.overrides.allow, undefined);
});

const chat = { channel: "telegram", account: "main" };
/** A pairing request whose code has this hash. */
async function pairing(contactId: string): Promise<string> {
  const codeSha256 = randomBytes(32).toString("hex");
  const request = { ...chat, contactId, name: null, codeSha256, ttlMs: 600_000 };
  assert.equal((await fixture.gateway.request(store.pairingRequest, request)).status, "created");
  return codeSha256;
}

/** A change of one row that finds nothing to do when it is made again. */
interface Change {
  name: string;
  /** Prepares the row; resolves with the statement that locks it, and with one attempt. */
  prepare: (opId: string) => Promise<{ lock: [text: string, value: string]; attempt: () => Promise<unknown> }>;
  result: unknown;
}

const pairingLock = "SELECT FROM parley.pairings WHERE code_sha256 = $1 FOR UPDATE";
const sessionLock = "SELECT FROM parley.sessions WHERE id = $1 FOR UPDATE";
const changes: Change[] = [
  {
    name: "the removal of a person",
    async prepare(opId) {
      const person = { ...chat, contactId: "removed" };
      await fixture.gateway.request(store.contactSet, { ...person, name: null, role: "guest" });
      return {
        lock: ["SELECT FROM parley.contacts WHERE contact_id = $1 FOR UPDATE", person.contactId],
        attempt: () => fixture.gateway.request(store.contactRemove, { opId, ...person }),
      };
    },
    result: { removed: true },
  },
  {
    name: "the admission of a person by code",
    async prepare(opId) {
      const codeSha256 = await pairing("admitted");
      return {
        lock: [pairingLock, codeSha256],
        attempt: () => fixture.gateway.request(store.pairingApprove, { opId, codeSha256, role: "user" }),
      };
    },
    result: { contact: { ...chat, contactId: "admitted", name: null, role: "user", route: null } },
  },
  {
    name: "the link of a chat by code",
    async prepare(opId) {
      const codeSha256 = await pairing("linked");
      const link = { opId, codeSha256, role: "owner" as const, route: "telegram:main:1" };
      return {
        lock: [pairingLock, codeSha256],
        attempt: () => fixture.gateway.request(store.contactLink, link),
      };
    },
    result: { contact: { ...chat, contactId: "linked", name: null, role: "owner", route: "telegram:main:1" } },
  },
  {
    name: "the revocation of a token",
    async prepare(opId) {
      const token = { name: "revoked", sha256: "a".repeat(64), scopes: ["read" as const], ttlMs: null, by: "owner" };
      await fixture.gateway.request(store.tokenCreate, token);
      return {
        lock: ["SELECT FROM parley.api_tokens WHERE name = $1 FOR UPDATE", token.name],
        attempt: () => fixture.gateway.request(store.tokenRevoke, { opId, name: token.name }),
      };
    },
    result: { revoked: true },
  },
  {
    name: "the cancellation of a queued message",
    async prepare(opId) {
      const { inboxId, sessionId } = await fixture.put(`route:${opId}`);
      return {
        lock: [sessionLock, sessionId],
        attempt: () => fixture.gateway.request(store.inboxEdit, { opId, inboxId, change: { do: "cancel" } }),
      };
    },
    result: { changed: true },
  },
  {
    name: "the stop of a session with queued messages",
    async prepare(opId) {
      const { sessionId } = await fixture.put(`route:${opId}`);
      return {
        lock: [sessionLock, sessionId],
        attempt: () => fixture.gateway.request(store.turnCancel, { opId, sessionId, queued: true }),
      };
    },
    result: { turnId: null, cancelledQueued: 1, turns: [] },
  },
  {
    name: "the sign-in with a code",
    async prepare() {
      const [codeSha256, sha256] = ["b".repeat(64), "c".repeat(64)];
      await fixture.gateway.request(store.consoleCodePut, { sha256: codeSha256, holder: "owner", ttlMs: 60_000 });
      return {
        lock: ["SELECT FROM parley.console_sessions WHERE sha256 = $1 FOR UPDATE", codeSha256],
        attempt: async () => {
          const open = { sha256, ttlMs: 60_000, from: { codeSha256 } };
          const { session } = await fixture.gateway.request(store.consoleSessionOpen, open);
          return session?.holder;
        },
      };
    },
    result: "owner",
  },
];

for (const { name, prepare, result } of changes) {
  test(`overlapping and later attempts of ${name} have the result of the first`, async () => {
    const { lock, attempt } = await prepare(randomUUID());
    const locker = new Client({ connectionString: fixture.stack.postgres.ownerUrl });
    await locker.connect();
    await locker.query("BEGIN");
    assert.equal((await locker.query(lock[0], [lock[1]])).rowCount, 1);
    const attempts = [attempt(), attempt()];
    await untilLocked(fixture.sql, 2);
    await locker.query("COMMIT");
    await locker.end();
    assert.deepEqual(await Promise.all(attempts), [result, result]);
    assert.deepEqual(await attempt(), result);
  });
}
