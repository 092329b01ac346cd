// The document cache on a real store: change hints, lost hints and outages of the store.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import type { Bus } from "@parley/bus";
import { createLogger } from "@parley/chassis";
import { store, WireError, type DocumentAuthor } from "@parley/contracts";
import { Cleanup, startStoreStack } from "@parley/testing";
import { DocumentCache, versionsOf, type CacheOptions } from "../src/prompt/document-cache.ts";
import { LeaderStore } from "../src/store-client/leader-store.ts";
import { PromptSources } from "../src/prompt/sources.ts";

const leaderStoreOf = (bus: Bus) => new LeaderStore(bus, 1, (reason) => assert.fail(reason));
const log = createLogger({ service: "test", replica: "test", level: "silent" });

async function open(cleanup: Cleanup, options: Partial<CacheOptions> = {}, storeEnv: Record<string, string> = {}) {
  const stack = await startStoreStack(cleanup, { storeEnv });
  const [core, gateway] = await Promise.all([stack.bus("agent-core"), stack.bus("channel-gateway")]);
  const cache = new DocumentCache(core, leaderStoreOf(core), log, { timeoutMs: 10_000, ...options });
  cleanup.add(async () => cache.close());
  await core.flush();
  return { stack, core, gateway, cache };
}

const put = (bus: Bus, path: string, content: string, author: DocumentAuthor = "owner") =>
  bus.request(store.documentPut, { opId: randomUUID(), path, content, author });

/** Resolves when the cached document satisfies the condition. */
async function until(
  cache: DocumentCache,
  reached: (text: string | undefined) => boolean,
  path: string,
): Promise<void> {
  await pollUntil(async () => reached((await cache.current()).get(path)?.content), path);
}

test("loads only documents that prompts contain, and returns their older versions", async () => {
  await using cleanup = new Cleanup();
  const { gateway, cache } = await open(cleanup);
  await put(gateway, "MEMORY.md", "tea");
  await put(gateway, "skills/a/SKILL.md", "---\nname: a\n---");
  await put(gateway, "skills/a/run.sh", "echo");
  await put(gateway, "memory/people.md", "Anna");
  for (let day = 10; day < 22; day++) await put(gateway, `memory/2026-11-${day}.md`, `day ${day}`);
  await cache.refresh();
  const first = await cache.current();
  assert.deepEqual(
    [...first.keys()],
    ["MEMORY.md", ...[14, 15, 16, 17, 18, 19, 20, 21].map((day) => `memory/2026-11-${day}.md`), "skills/a/SKILL.md"],
  );
  const versions = versionsOf(first);
  await put(gateway, "MEMORY.md", "coffee");
  await cache.refresh();
  assert.equal((await cache.current()).get("MEMORY.md")?.content, "coffee");
  assert.equal((await cache.at(versions)).get("MEMORY.md")?.content, "tea");
  assert.equal((await cache.at(versions)).get("memory/2026-11-20.md"), first.get("memory/2026-11-20.md"));
});

// design: 000.22
test("reloads only the changed document when a hint of a change or removal arrives", async () => {
  await using cleanup = new Cleanup();
  const { gateway, cache } = await open(cleanup, { recheckMs: 3_600_000 });
  await put(gateway, "SOUL.md", "calm");
  await put(gateway, "USER.md", "Anna");
  await cache.refresh();
  const before = await cache.current();
  await put(gateway, "SOUL.md", "lively");
  await until(cache, (text) => text === "lively", "SOUL.md");
  const after = await cache.current();
  assert.equal(after.get("USER.md"), before.get("USER.md"));
  assert.equal(before.get("SOUL.md")?.content, "calm");
  await gateway.request(store.documentRevise, {
    opId: randomUUID(),
    path: "SOUL.md",
    change: { do: "delete", author: "owner" },
  });
  await until(cache, (text) => text === undefined, "SOUL.md");
});

test("caches the untrusted lines of current and older versions", async () => {
  await using cleanup = new Cleanup();
  const { stack, gateway, cache } = await open(cleanup, { recheckMs: 3_600_000, timeoutMs: 2_000 });
  await put(gateway, "MEMORY.md", "tea\nObey.\n", "untrusted");
  await put(gateway, "MEMORY.md", "coffee\nObey.\n");
  await put(gateway, "SOUL.md", "calm\n");
  await cache.refresh();
  const edited = await cache.current();
  assert.deepEqual(edited.get("MEMORY.md")?.untrusted, [{ from: 2, to: 2 }]);
  assert.deepEqual(edited.get("SOUL.md")?.untrusted, []);
  await gateway.request(store.documentRevise, {
    opId: randomUUID(),
    path: "MEMORY.md",
    change: { do: "trust", seenVersion: 2 },
  });
  await cache.refresh();
  const vouched = (await cache.current()).get("MEMORY.md");
  assert.deepEqual([vouched?.version, vouched?.untrusted], [3, []]);
  await stack.store.close();
  const told = await cache.at(versionsOf(edited));
  assert.deepEqual(told.get("MEMORY.md"), edited.get("MEMORY.md"));
});

test("finds a change whose hint was lost", async () => {
  await using cleanup = new Cleanup();
  const { gateway, cache } = await open(cleanup, { recheckMs: 30 }, { FAULT_DROP_HINTS: "1" });
  await put(gateway, "MEMORY.md", "one");
  await cache.current();
  await put(gateway, "MEMORY.md", "two");
  await until(cache, (text) => text === "two", "MEMORY.md");
});

test("serves the last loaded documents during a store outage, and throws when none are loaded", async () => {
  await using cleanup = new Cleanup();
  const { stack, core, gateway } = await open(cleanup);
  let isAway = false;
  const real = leaderStoreOf(core);
  // Impatient only during the outage: on a busy machine a response may take longer.
  const impatient = {
    request: (...[contract, input, options]: Parameters<LeaderStore["request"]>) =>
      real.request(contract, input, isAway ? { timeoutMs: 200 } : options),
  } as LeaderStore;
  const cache = new DocumentCache(core, impatient, log, { recheckMs: 20, timeoutMs: 10_000 });
  cleanup.add(async () => cache.close());
  await put(gateway, "MEMORY.md", "kept");
  await cache.refresh();
  assert.equal((await cache.current()).get("MEMORY.md")?.content, "kept");
  await stack.store.close();
  isAway = true;
  await assert.rejects(cache.refresh(), (error) => WireError.is(error, "UNAVAILABLE", "TIMEOUT"));
  assert.equal((await cache.current()).get("MEMORY.md")?.content, "kept");
  const late = new DocumentCache(core, leaderStoreOf(core), log, { timeoutMs: 200 });
  await assert.rejects(late.current(), (error) => WireError.is(error, "UNAVAILABLE", "TIMEOUT"));
  late.close();
});

test("marks no skill as unavailable while no tool-runner responds", async () => {
  await using cleanup = new Cleanup();
  const { core, gateway } = await open(cleanup);
  await put(gateway, "skills/a/SKILL.md", "---\nname: a\ndescription: b\nrequires: {bins: [no-such-program]}\n---\n");
  const sources = new PromptSources(core, leaderStoreOf(core), log, { timeoutMs: 10_000 });
  await sources.documents.refresh();
  const { documents, skills } = await sources.current();
  assert.deepEqual([[...documents.keys()], skills.map(({ missing }) => missing)], [["skills/a/SKILL.md"], [[]]]);
  sources.close();
});
