// Documents on a real PostgreSQL and a real bus: every version is stored, and no write is lost.
import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import {
  documentChanged,
  documentPathProblem,
  maxDocumentBytes,
  store,
  WireError,
  type DocumentMeta,
  type InputOf,
} from "@parley/contracts";
import type { Bus } from "@parley/bus";
import { Cleanup, startStoreStack } from "@parley/testing";

const cleanup = new Cleanup();
let gateway: Bus;
let core: Bus;

before(async () => {
  const stack = await startStoreStack(cleanup);
  [gateway, core] = await Promise.all([stack.bus("channel-gateway"), stack.bus("agent-core")]);
});
after(() => cleanup[Symbol.asyncDispose]());

type Put = InputOf<typeof store.documentPut>;

const put = (path: string, content: string, more: Partial<Put> = {}) =>
  gateway.request(store.documentPut, { opId: randomUUID(), path, content, author: "agent", ...more });
const get = async (path: string, version?: number) =>
  (await core.request(store.documentGet, { path, ...(version === undefined ? {} : { version }) })).document;
const remove = (path: string, more: Partial<Put> = {}) =>
  gateway.request(store.documentRevise, {
    opId: randomUUID(),
    path,
    change: { do: "delete", author: "owner" },
    ...more,
  });

/** All changes after a position, read in small pages. */
async function changesSince(since: number): Promise<DocumentMeta[]> {
  const all: DocumentMeta[] = [];
  for (let cursor = since; ;) {
    const { documents, more } = await core.request(store.documentList, { since: cursor, limit: 3 });
    all.push(...documents);
    cursor = documents.at(-1)?.change ?? cursor;
    if (!more) return all;
  }
}

test("a document is its newest version, and all versions stay readable", async () => {
  const first = await put("memory/kept.md", "one\n");
  assert.equal(first.status, "saved");
  await put("memory/kept.md", "two\n", { author: "owner" });
  const now = await get("memory/kept.md");
  assert.deepEqual([now?.version, now?.content, now?.author, now?.deleted], [2, "two\n", "owner", false]);
  assert.equal(now?.sha256, createHash("sha256").update("two\n").digest("hex"));
  assert.equal((await get("memory/kept.md", 1))?.content, "one\n");
  assert.equal(await get("memory/kept.md", 9), null);
  assert.equal(await get("memory/never.md"), null);
  const { versions, more } = await gateway.request(store.documentHistory, { path: "memory/kept.md", limit: 10 });
  assert.deepEqual(
    [versions.map(({ version, author }) => [version, author]), more],
    [
      [
        [2, "owner"],
        [1, "agent"],
      ],
      false,
    ],
  );
  const older = await gateway.request(store.documentHistory, { path: "memory/kept.md", limit: 1, before: 2 });
  assert.deepEqual(
    older.versions.map(({ version }) => version),
    [1],
  );
});

test("a change from an old version is refused with the current version", async () => {
  await put("memory/raced.md", "one", { expectedVersion: 0 });
  await put("memory/raced.md", "two", { expectedVersion: 1 });
  const refused = await put("memory/raced.md", "lost", { expectedVersion: 1 });
  assert.deepEqual([refused.status, refused.document?.version], ["conflict", 2]);
  assert.equal((await get("memory/raced.md"))?.content, "two");
  const absent = await put("memory/absent.md", "x", { expectedVersion: 4 });
  assert.deepEqual(absent, { status: "conflict", document: null });
});

test("one of several concurrent writers of the same version wins, and the others get a conflict", async () => {
  await put("memory/crowd.md", "start");
  const outcomes = await Promise.all(
    Array.from({ length: 12 }, (_, index) =>
      gateway.request(store.documentPut, {
        opId: randomUUID(),
        path: "memory/crowd.md",
        content: `writer ${index}`,
        author: "agent",
        expectedVersion: 1,
      }),
    ),
  );
  assert.equal(outcomes.filter(({ status }) => status === "saved").length, 1);
  assert.equal(outcomes.filter(({ status }) => status === "conflict").length, 11);
});

test("concurrent writers without an expected version all create a version", async () => {
  const texts = Array.from({ length: 12 }, (_, index) => `note ${index}`);
  await Promise.all(texts.map((text) => put("memory/blind.md", text)));
  const kept = await Promise.all(texts.map((_, index) => get("memory/blind.md", index + 1)));
  assert.deepEqual(new Set(kept.map((document) => document?.content)), new Set(texts));
});

test("a repeated operation id changes a document once, also after another writer", async () => {
  const opId = randomUUID();
  const first = await put("memory/again.md", "mine", { opId });
  await put("memory/again.md", "theirs");
  assert.deepEqual(await put("memory/again.md", "mine", { opId }), first);
  assert.equal((await get("memory/again.md"))?.content, "theirs");
});

test("the same text creates a version only for a more trusted author", async () => {
  await put("memory/same.md", "text", { author: "untrusted" });
  assert.equal((await put("memory/same.md", "text", { author: "untrusted" })).status, "unchanged");
  const vouched = await put("memory/same.md", "text", { author: "owner" });
  assert.deepEqual([vouched.status, vouched.document?.version], ["saved", 2]);
  assert.equal((await put("memory/same.md", "text", { author: "agent" })).document?.author, "owner");
});

test("a removed document keeps its versions and can be restored", async () => {
  await put("memory/gone.md", "was here");
  const removed = await remove("memory/gone.md", { expectedVersion: 1 });
  assert.deepEqual([removed.status, removed.document?.version, removed.document?.deleted], ["saved", 2, true]);
  assert.equal(await get("memory/gone.md"), null);
  assert.equal((await get("memory/gone.md", 1))?.content, "was here");
  await assert.rejects(remove("memory/gone.md"), (error) => WireError.is(error, "NOT_FOUND"));
  const back = await put("memory/gone.md", "again", { expectedVersion: 0 });
  assert.deepEqual([back.status, back.document?.version], ["saved", 3]);
});

test("list returns each changed document once, with removals, page by page", async () => {
  const since = (await changesSince(0)).at(-1)?.change ?? 0;
  const paths = ["USER.md", "skills/a/SKILL.md", "skills/a/run.sh", "memory/x/y.md", "TOOLS.md"];
  for (const path of paths) await put(path, path);
  await put("USER.md", "newer");
  await remove("TOOLS.md");
  const changes = await changesSince(since);
  assert.deepEqual(
    changes.map(({ path, version, deleted }) => [path, version, deleted]),
    [
      ["skills/a/SKILL.md", 1, false],
      ["skills/a/run.sh", 1, false],
      ["memory/x/y.md", 1, false],
      ["USER.md", 2, false],
      ["TOOLS.md", 2, true],
    ],
  );
  assert.deepEqual(await changesSince(changes.at(-1)?.change ?? 0), []);
});

test("a reader of changes misses none with concurrent writers", async () => {
  let cursor = (await changesSince(0)).at(-1)?.change ?? 0;
  const seen = new Map<string, number>();
  const follow = async () => {
    for (const each of await changesSince(cursor)) {
      seen.set(each.path, each.version);
      cursor = each.change;
    }
  };
  const written = new AbortController();
  const following = (async () => {
    while (!written.signal.aborted) await follow();
    await follow();
  })();
  await Promise.all(
    Array.from({ length: 40 }, (_, index) => put(`memory/follow/${index % 20}.md`, `${index} ${randomUUID()}`)),
  );
  written.abort();
  await following;
  assert.deepEqual([...new Set(seen.values())], [2]);
  assert.equal(seen.size, 20);
});

test("a change is published with its version after the commit", async () => {
  const heard = Promise.withResolvers<{ path: string; version: number; deleted: boolean }>();
  const subscription = core.subscribe(documentChanged, {}, (event) => {
    if (event.path === "SOUL.md") heard.resolve(event);
  });
  await core.flush();
  await put("SOUL.md", "calm", { author: "owner" });
  const event = await heard.promise;
  subscription.close();
  assert.deepEqual([event.path, event.version, event.deleted], ["SOUL.md", 1, false]);
});

test("an invalid document path is refused with its problem", async () => {
  const refusals: [string, RegExp][] = [
    ["notes.md", /documents are only SOUL\.md, AGENTS\.md.*memory\/….md and skills\/<name>\/…/],
    ["memory/photo.png", /end in \.md/],
    ["memory", /documents are only SOUL\.md/],
    ["skills/loose.md", /a skill is a folder: skills\/<name>\/SKILL\.md/],
    ["memory/../SOUL.md", /without empty parts, \. or \.\./],
    ["/SOUL.md", /is relative/],
    ["memory/a\u0007.md", /control characters/],
    [`memory/${"x".repeat(300)}.md`, /at most 256 characters/],
    ["soul.md", /documents are only SOUL\.md/],
  ];
  for (const [path, words] of refusals) {
    assert.match(documentPathProblem(path) ?? "", words);
    await assert.rejects(put(path, "x"), (error) => WireError.is(error, "INVALID_INPUT") && words.test(error.message));
  }
  await assert.rejects(put("SOUL.md", "a\0b"), (error) => WireError.is(error, "INVALID_INPUT"));
});

test("the largest document fits the bus in both directions, and a larger one is refused", async () => {
  const largest = `${"é".repeat(maxDocumentBytes / 2 - 1)}\n\n`;
  await put("memory/large.md", largest);
  assert.equal((await get("memory/large.md"))?.content, largest);
  await assert.rejects(put("memory/large.md", `${largest}x`), (error) => WireError.is(error, "TOO_LARGE"));
  await assert.rejects(put("memory/large.md", "\n".repeat(maxDocumentBytes)), (error) =>
    WireError.is(error, "TOO_LARGE"),
  );
});
