// Recency and importance on a real PostgreSQL: among equally good hits, newer and important ones come first, and better hits are never
// moved down by it.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { store } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { openStoreFixture, type StoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;
let turnId: string;

before(async () => {
  fixture = await openStoreFixture(cleanup, "[memory]\nrecency_weight = 0.5\nimportance_weight = 1\n");
  ({ turnId } = await fixture.begun());
});
after(() => cleanup[Symbol.asyncDispose]());

const put = (path: string, content: string) =>
  fixture.gateway.request(store.documentPut, { opId: randomUUID(), path, content, author: "owner" });
const found = async (query: string) =>
  (await fixture.core.request(store.memorySearch, { turnId, query, limit: 10 })).hits.map(({ path }) => path);
const daysAgo = (days: number) => new Date(Date.now() - days * 24 * 60 * 60 * 1000).toISOString().slice(0, 10);

test("among equal notes the newer one comes first, and MEMORY.md before all", async () => {
  const text = "The umbrella hangs in the hallway.\n";
  const old = `memory/${daysAgo(90)}.md`;
  const recent = `memory/${daysAgo(1)}.md`;
  // Without a boost the one that is indexed last would win.
  await put("MEMORY.md", text);
  await put(recent, text);
  await put(old, text);
  await put("memory/things.md", text);
  assert.deepEqual(await found("where is the umbrella?"), ["MEMORY.md", recent, old, "memory/things.md"]);
});

test("a better old note precedes a weaker new one", async () => {
  const old = `memory/${daysAgo(400)}-trip.md`;
  const recent = `memory/${daysAgo(0)}.md`;
  await put(old, "The ferry to Helgoland sails from Cuxhaven at half past ten.\n");
  await put(recent, "A ferry passed by.\n");
  assert.equal((await found("when does the ferry to Helgoland sail from Cuxhaven?"))[0], old);
});
