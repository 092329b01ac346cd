// Marking a document as trusted by the owner, and the authors of each version's lines, on a real PostgreSQL.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { Bus } from "@parley/bus";
import { letterOf, store, type DocumentAuthor } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import fc from "fast-check";
import type { Client } from "pg";
import { openDatabase } from "../src/db/database.ts";
import { lineAuthors } from "../src/memory/authors.ts";
import { fillAllAuthors } from "../src/memory/authors-of-version.ts";
import { advisoryLocks } from "../src/db/advisory-locks.ts";
import { failsWith, openStoreFixture, untilLocked, type StoreFixture } from "./support/fixture.ts";

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
const vouch = (path: string, expectedVersion: number, opId: string = randomUUID()) =>
  gateway.request(store.documentRevise, { opId, path, change: { do: "trust", seenVersion: expectedVersion } });
const remove = (path: string) =>
  gateway.request(store.documentRevise, { opId: randomUUID(), path, change: { do: "delete", author: "owner" } });
const restore = (path: string, version: number) =>
  gateway.request(store.documentRevise, { opId: randomUUID(), path, change: { do: "restore", version } });
const append = (path: string, text: string, author: "agent" | "untrusted") =>
  core.request(store.memoryAppend, { ...fixture.fenced(), turnId, path, heading: "# Notes\n\n", text, author });
const newest = async (path: string) => (await core.request(store.documentGet, { path })).document;
/** One letter per line. */
const lettersOf = async (path: string, version: number) =>
  (await gateway.request(store.documentGet, { path, version, withAuthors: true })).document?.lineAuthors ?? null;

/** As a turn receives the note. */
async function read(path: string): Promise<string> {
  const answer = await core.request(store.memoryGet, { turnId, path, from: 1, lines: 2_000 });
  return answer.status === "found" ? answer.lines.map(({ author }) => letterOf(author)).join("") : "";
}

test("editing marks the edited line as the owner's, and vouching marks all lines", async () => {
  const path = "memory/letters.md";
  await put(path, "# Letters\n");
  await append(path, "The baker asks to be paid in advance.", "untrusted");
  await append(path, "She wrote on Monday.", "agent");
  const text = `${(await newest(path))?.content ?? ""}Answered.\n`;
  await put(path, text);
  assert.equal(await read(path), "ouao");
  assert.equal((await put(path, text)).status, "unchanged", "the newest version is already the owner's");
  assert.equal(await read(path), "ouao");

  const vouched = await vouch(path, 4);
  assert.deepEqual(
    [vouched.status, vouched.document?.version, vouched.document?.author, vouched.document?.turnId],
    ["saved", 5, "owner", null],
  );
  assert.equal((await newest(path))?.content, text);
  assert.equal(await read(path), "oooo");
  const { hits } = await core.request(store.memorySearch, { turnId, query: "baker", limit: 5 });
  assert.deepEqual([hits[0]?.path, hits[0]?.author], [path, "owner"]);
  assert.equal(await lettersOf(path, 4), "ouao", "the earlier version keeps its authors");
  // A rebuilt index uses only the versions.
  await sql.query("DELETE FROM parley.memory_documents WHERE path = $1", [path]);
  assert.equal(await read(path), "oooo");

  await append(path, "The baker asks again.", "untrusted");
  assert.equal(await read(path), "oooou", "later lines are not trusted");
  assert.equal((await restore(path, 4)).status, "saved");
  assert.equal(await read(path), "ouao", "restored lines keep their authors");
});

test("vouch is refused for another version or a missing document, and runs once", async () => {
  const path = "memory/once.md";
  await put(path, "theirs\n", "untrusted");
  await append(path, "More of theirs.", "untrusted");
  const late = await vouch(path, 1);
  assert.deepEqual([late.status, late.document?.version], ["conflict", 2]);
  assert.equal(await read(path), "uu");
  const opId = randomUUID();
  const first = await vouch(path, 2, opId);
  assert.deepEqual([first.status, first.document?.version], ["saved", 3]);
  assert.deepEqual(await vouch(path, 2, opId), first, "a retry returns the same change");
  assert.equal((await vouch(path, 3)).status, "unchanged");
  assert.equal((await newest(path))?.version, 3);
  await remove(path);
  await assert.rejects(vouch(path, 4), failsWith("NOT_FOUND", /there is no document memory\/once\.md/));
  await assert.rejects(vouch("memory/never.md", 1), failsWith("NOT_FOUND"));
  assert.deepEqual([await lettersOf(path, 4), await lettersOf(path, 9)], ["", null]);
});

test("vouch does not cover a concurrent write", async () => {
  const path = "memory/raced.md";
  await put(path, "mine\n", "agent");
  await sql.query("BEGIN");
  await sql.query("SELECT pg_advisory_xact_lock($1)", [advisoryLocks.documents]);
  await sql.query("UPDATE parley.documents SET latest = false WHERE path = $1", [path]);
  await sql.query(
    `INSERT INTO parley.documents (path, version, content, bytes, sha256, deleted, author)
     VALUES ($1, 2, 'theirs', 6, '', false, 'untrusted')`,
    [path],
  );
  const vouching = vouch(path, 1);
  await untilLocked(sql, 1);
  await sql.query("COMMIT");
  const { status, document } = await vouching;
  assert.deepEqual([status, document?.version], ["conflict", 2]);
  assert.equal(await read(path), "u");
});

test("vouch covers skills", async () => {
  const path = "skills/tone/SKILL.md";
  await put(path, "calm\n");
  await put(path, "calm\nloud\n", "untrusted");
  assert.deepEqual([await lettersOf(path, 1), await lettersOf(path, 2)], ["o", "ou"]);
  assert.equal((await vouch(path, 2)).document?.author, "owner");
  assert.equal(await lettersOf(path, 3), "oo");
});

const happening = fc.oneof(
  fc.record({
    what: fc.constant("put" as const),
    lines: fc.uniqueArray(fc.constantFrom("a", "b", "c", "d"), { minLength: 1, maxLength: 4 }),
    author: fc.constantFrom<DocumentAuthor>("owner", "import", "agent", "untrusted"),
  }),
  fc.record({ what: fc.constant("append" as const), author: fc.constantFrom("agent" as const, "untrusted" as const) }),
  fc.record({ what: fc.constant("remove" as const) }),
  fc.record({ what: fc.constant("restore" as const), back: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ what: fc.constant("vouch" as const) }),
);

test("property: after vouch all lines are the owner's, and older versions keep their authors", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(happening, { minLength: 6, maxLength: 14 }), async (happenings) => {
      const path = `memory/${randomUUID()}.md`;
      const had = new Map<number, string>();
      for (const happened of happenings) {
        const before = await newest(path);
        if (happened.what === "put")
          await put(path, happened.lines.map((line) => `${line}\n`).join(""), happened.author);
        if (happened.what === "append") await append(path, "e", happened.author);
        if (happened.what === "remove" && before !== null) await remove(path);
        if (happened.what === "restore") {
          const version = [...had.keys()].at(-happened.back);
          if (version !== undefined) await restore(path, version);
        }
        if (happened.what === "vouch" && before !== null) {
          const wasHis = before.author === "owner" && /^o*$/.test(had.get(before.version) ?? "");
          const { status } = await vouch(path, before.version);
          assert.equal(status, wasHis ? "unchanged" : "saved");
          assert.match(await read(path), /^o+$/);
          assert.equal((await newest(path))?.content, before.content);
        }
        const now = await newest(path);
        if (now !== null) had.set(now.version, await read(path));
      }
      for (const [version, authors] of had) assert.equal(await lettersOf(path, version), authors);
    }),
    { numRuns: 12 },
  );
});

const forgetAuthors = (path: string) => sql.query("UPDATE parley.documents SET authors = NULL WHERE path = $1", [path]);

test("fills the line authors of an older store's versions when they are read or followed", async () => {
  const path = "memory/older.md";
  await put(path, "Mine.\nAlso mine.\n");
  await append(path, "Obey this.", "untrusted");
  await put(path, "Mine.\nObey this.\nEdited.\n");
  await remove(path);
  await restore(path, 2);
  await append(path, "Noted.", "agent");
  const versions = [1, 2, 3, 4, 5, 6];
  const all = () => Promise.all(versions.map((version) => lettersOf(path, version)));
  const written = await all();
  assert.deepEqual(written, ["oo", "oou", "ouo", "", "oou", "ooua"]);
  await forgetAuthors(path);
  assert.deepEqual(await all(), written, "when a version is read");
  await forgetAuthors(path);
  await put(path, "Obey this.\nNew.\n", "agent");
  assert.equal(await lettersOf(path, 7), "ua", "when a version follows");
});

test("fills the line authors of all versions at the start, each in a transaction of its own", async () => {
  // Not a note: the index of notes would fill the authors itself.
  const path = "skills/older/SKILL.md";
  await put(path, "Mine.\nAlso mine.\n");
  await put(path, "Mine.\nAlso mine.\nObey this.\n", "untrusted");
  await put(path, "Mine.\nObey this.\nEdited.\n");
  await remove(path);
  await restore(path, 2);
  await put(path, "Obey this.\nNew.\n", "agent");
  await forgetAuthors(path);
  const database = openDatabase(fixture.stack.postgres.ownerUrl, 1, () => undefined);
  await fillAllAuthors(database);
  await database.pool.end();
  const { rows } = await sql.query<{ authors: string; transaction: string }>(
    "SELECT authors, xmin::text AS transaction FROM parley.documents WHERE path = $1 ORDER BY version",
    [path],
  );
  assert.deepEqual(
    rows.map(({ authors }) => authors),
    ["oo", "oou", "ouo", "", "oou", "ua"],
  );
  assert.equal(new Set(rows.map(({ transaction }) => transaction)).size, rows.length);
});

test("counts lines of unknown authors as untrusted, also after an edit", () => {
  assert.equal(lineAuthors({ text: "one\ntwo\n", authors: "o" }, "one\ntwo\nthree\n", "owner"), "ouo");
});
