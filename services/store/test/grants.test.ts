// Grants as a leader signs them and the store checks them.
import assert from "node:assert/strict";
import { after, before, mock, test } from "node:test";
import { newId, store, WireError, type Grant } from "@parley/contracts";
import { Cleanup, createTestSigner, startStoreStack } from "@parley/testing";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { openDatabase, type Database } from "../src/db/database.ts";
import { Grants } from "../src/grants.ts";

type Sign = (rights: Rights) => string;
type Rights = Omit<Grant, "v" | "epoch" | "expiresAt"> & { maxDurationMs: number };

const cleanup = new Cleanup();
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
let database: Database;
let grants: Grants;
let epoch: number;
let sign: Sign;
let next: () => Promise<Sign>;

before(async () => {
  const stack = await startStoreStack(cleanup);
  const core = await stack.bus("agent-core");
  database = openDatabase(stack.postgres.storeUrl, 2, () => undefined);
  cleanup.add(() => database.pool.end());
  grants = new Grants(database);
  next = async () => {
    const signer = createTestSigner();
    const input = { opId: newId(), holder: "test", grantKey: signer.grantKey };
    ({ epoch } = await core.request(store.leadershipAcquire, input));
    return signerOf(signer, epoch);
  };
  sign = await next();
});
after(() => cleanup[Symbol.asyncDispose]());

function signerOf(signer: ReturnType<typeof createTestSigner>, of: number): Sign {
  return ({ maxDurationMs, ...rights }) => signer.sign({ ...rights, epoch: of, expiresAt: Date.now() + maxDurationMs });
}

const turnId = newId();
const rights = {
  sessionId: newId(),
  turnId,
  n: 2,
  rootTurnId: turnId,
  tool: "write",
  class: "once" as const,
  audience: "owner" as const,
  tainted: true,
  documents: "write" as const,
  maxDurationMs: 60_000,
};
const forbidden = (error: unknown) => WireError.is(error, "FORBIDDEN");

test("accepts the grants of a leader, and of the previous one after a new epoch has begun", async () => {
  const token = sign(rights);
  const { maxDurationMs, ...signed } = rights;
  const { v, epoch: of, expiresAt, ...checked } = await grants.check(token);
  assert.deepEqual([checked, v, of], [signed, 1, epoch]);
  assert.ok(expiresAt <= Date.now() + maxDurationMs);
  const before = epoch;
  await next();
  assert.equal((await grants.check(token)).epoch, before);
  assert.equal((await new Grants(database).check(token)).epoch, before, "also without a cached key");
});

test("refuses a grant when any of its characters is altered", async () => {
  const token = sign(rights);
  await fc.assert(
    fc.asyncProperty(fc.nat(token.length - 1), fc.constantFrom(...alphabet.split(""), "."), async (at, character) => {
      if (token[at] === character) return;
      await assert.rejects(grants.check(token.slice(0, at) + character + token.slice(at + 1)), forbidden);
    }),
    { numRuns: propertyRuns(500) },
  );
  for (const character of alphabet)
    if (!token.endsWith(character)) await assert.rejects(grants.check(token.slice(0, -1) + character), forbidden);
});

test("refuses a grant when it is expired, truncated, or signed with another epoch's key", async () => {
  const other = createTestSigner();
  await assert.rejects(grants.check(sign({ ...rights, maxDurationMs: -1 })), forbidden);
  const token = sign(rights);
  const { expiresAt } = await grants.check(token);
  mock.timers.enable({ apis: ["Date"], now: expiresAt });
  await assert.rejects(grants.check(token), forbidden, "also one that was accepted before");
  mock.timers.reset();
  await assert.rejects(grants.check(sign(rights).slice(0, -20)), forbidden);
  await assert.rejects(grants.check(signerOf(other, epoch)(rights)), forbidden);
  await assert.rejects(grants.check(signerOf(other, epoch + 1_000)(rights)), forbidden);
});
