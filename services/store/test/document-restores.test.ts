// Restoring an old version of a document on a real PostgreSQL: its text, and each line with its author at that time.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { Bus } from "@parley/bus";
import { store, type DocumentAuthor } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import fc from "fast-check";
import type { Client } from "pg";
import { failsWith, openStoreFixture, type StoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;
let gateway: Bus;
let core: Bus;
let sql: Client;
let turnId: string;

before(async () => {
  fixture = await openStoreFixture(cleanup);
  ({ gateway, core, sql } = fixture);
  ({ turnId } = await fixture.begun());
});
after(() => cleanup[Symbol.asyncDispose]());

const put = (path: string, content: string, author: DocumentAuthor = "owner") =>
  gateway.request(store.documentPut, { opId: randomUUID(), path, content, author });
const restore = (path: string, version: number, more: { opId?: string; expectedVersion?: number } = {}) =>
  gateway.request(store.documentRevise, { opId: randomUUID(), path, change: { do: "restore", version }, ...more });
const remove = (path: string) =>
  gateway.request(store.documentRevise, { opId: randomUUID(), path, change: { do: "delete", author: "owner" } });
const append = (path: string, text: string, author: "agent" | "untrusted") =>
  core.request(store.memoryAppend, { ...fixture.fenced(), turnId, path, heading: "# Notes\n\n", text, author });
const newest = async (path: string) => (await core.request(store.documentGet, { path })).document;

/** The author of each line of the current note; null: no note. */
async function authors(path: string): Promise<DocumentAuthor[] | null> {
  const read = await core.request(store.memoryGet, { turnId, path, from: 1, lines: 2_000 });
  return read.status === "found" ? read.lines.map(({ author }) => author) : null;
}

test("a restored untrusted line stays untrusted, and the same line by the owner is the owner's", async () => {
  const path = "memory/wilhelmina.md";
  await put(path, "The gate code is kept by Wilhelmina.\n");
  await append(path, "Wilhelmina says to send money to a stranger.", "untrusted");
  await append(path, "She was seen on Monday.", "agent");
  const mixed = ["owner", "untrusted", "agent"];
  assert.deepEqual(await authors(path), mixed);
  await put(path, "The gate code is kept by Wilhelmina.\n");
  assert.deepEqual(await authors(path), ["owner"]);

  const back = await restore(path, 3);
  assert.deepEqual(
    [back.status, back.document?.version, back.document?.author, back.document?.restoredFrom, back.document?.turnId],
    ["saved", 5, "untrusted", 3, null],
  );
  assert.deepEqual(await authors(path), mixed);
  const search = { turnId, query: "stranger", limit: 5 };
  assert.equal((await core.request(store.memorySearch, search)).hits[0]?.author, "untrusted");

  await remove(path);
  await restore(path, 3);
  assert.deepEqual(await authors(path), mixed, "also after a removal");
  // A rebuilt index uses only the versions.
  await sql.query("DELETE FROM parley.memory_documents WHERE path = $1", [path]);
  assert.deepEqual(await authors(path), mixed);

  await put(path, (await newest(path))?.content ?? "");
  assert.deepEqual(await authors(path), ["owner", "owner", "owner"], "saving the unchanged text marks it as trusted");
});

test("a restored skill has the authors of its version", async () => {
  const path = "skills/tone/SKILL.md";
  await put(path, "theirs", "untrusted");
  await put(path, "mine");
  assert.deepEqual([(await restore(path, 1)).document?.author, (await newest(path))?.content], ["untrusted", "theirs"]);
  assert.equal((await restore(path, 2)).document?.author, "owner");
});

test("restore runs once, from the expected version, and only to an existing text", async () => {
  const path = "memory/once.md";
  await put(path, "one\n");
  await put(path, "two\n");
  assert.equal((await restore(path, 2)).status, "unchanged");
  assert.equal((await restore(path, 1, { expectedVersion: 1 })).status, "conflict");
  const opId = randomUUID();
  const first = await restore(path, 1, { opId, expectedVersion: 2 });
  assert.deepEqual(await restore(path, 1, { opId, expectedVersion: 2 }), first);
  assert.deepEqual([(await newest(path))?.version, (await newest(path))?.content], [3, "one\n"]);
  await remove(path);
  await assert.rejects(restore(path, 4), failsWith("NOT_FOUND"));
  await assert.rejects(restore(path, 9), failsWith("NOT_FOUND"));
  await assert.rejects(restore("memory/never.md", 1), failsWith("NOT_FOUND"));
});

const happening = fc.oneof(
  fc.record({
    what: fc.constant("put" as const),
    lines: fc.uniqueArray(fc.constantFrom("a", "b", "c", "d"), { minLength: 1, maxLength: 4 }),
    author: fc.constantFrom<DocumentAuthor>("owner", "import", "agent", "untrusted"),
  }),
  fc.record({
    what: fc.constant("append" as const),
    text: fc.constantFrom("e", "f"),
    author: fc.constantFrom("agent" as const, "untrusted" as const),
  }),
  fc.record({ what: fc.constant("remove" as const) }),
  fc.record({ what: fc.constant("restore" as const), back: fc.integer({ min: 1, max: 4 }) }),
);

test("property: a restored version has the text and the authors of the original", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(happening, { minLength: 6, maxLength: 14 }), async (happenings) => {
      const path = `memory/${randomUUID()}.md`;
      const had = new Map<number, { content: string; authors: DocumentAuthor[] | null }>();
      for (const happened of happenings) {
        if (happened.what === "put")
          await put(path, happened.lines.map((line) => `${line}\n`).join(""), happened.author);
        if (happened.what === "append") await append(path, happened.text, happened.author);
        if (happened.what === "remove" && (await newest(path)) !== null) await remove(path);
        if (happened.what === "restore") {
          const version = [...had.keys()].at(-happened.back);
          const then = version === undefined ? undefined : had.get(version);
          if (version === undefined || then === undefined) continue;
          const { status } = await restore(path, version);
          assert.equal((await newest(path))?.content, then.content);
          if (status === "saved") assert.deepEqual(await authors(path), then.authors);
        }
        const now = await newest(path);
        if (now !== null) had.set(now.version, { content: now.content, authors: await authors(path) });
      }
    }),
    { numRuns: 12 },
  );
});
