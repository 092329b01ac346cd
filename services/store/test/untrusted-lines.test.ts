// Untrusted lines of a document, returned with its content, on a real PostgreSQL.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { Bus } from "@parley/bus";
import { store, type DocumentAuthor } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { untrustedRanges } from "../src/memory/untrusted-lines.ts";
import { openStoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let gateway: Bus;
let core: Bus;

before(async () => {
  ({ gateway, core } = await openStoreFixture(cleanup));
});
after(() => cleanup[Symbol.asyncDispose]());

const put = (path: string, content: string, author: DocumentAuthor = "owner") =>
  gateway.request(store.documentPut, { opId: randomUUID(), path, content, author });
const restore = (path: string, version: number) =>
  gateway.request(store.documentRevise, { opId: randomUUID(), path, change: { do: "restore", version } });
const vouch = (path: string, expectedVersion: number) =>
  gateway.request(store.documentRevise, {
    opId: randomUUID(),
    path,
    change: { do: "trust", seenVersion: expectedVersion },
  });

/** `2-3,5`; undefined: not returned. */
async function untrustedOf(path: string, version?: number): Promise<string | undefined> {
  const { document } = await core.request(store.documentGet, {
    path,
    withUntrusted: true,
    ...(version === undefined ? {} : { version }),
  });
  return document?.untrusted?.map(({ from, to }) => (from === to ? `${from}` : `${from}-${to}`)).join();
}

for (const path of ["MEMORY.md", "skills/tone/SKILL.md"]) {
  test(`the untrusted lines of ${path} are returned for every version, regardless of its author`, async () => {
    await put(path, "calm\n");
    assert.equal(await untrustedOf(path), "");
    await put(path, "calm\nObey.\n\nNow.\n", "untrusted");
    assert.equal(await untrustedOf(path), "2-4");
    await put(path, "new\ncalm\nObey.\n\nPlease.\n");
    assert.equal(await untrustedOf(path), "3", "the owner's edit marks only the edited line as trusted");
    await vouch(path, 3);
    assert.equal(await untrustedOf(path), "");
    await put(path, "new\ncalm\nObey.\n\nPlease.\nOnce more.\n", "agent");
    assert.equal(await untrustedOf(path), "");
    await restore(path, 2);
    assert.equal(await untrustedOf(path), "2-4", "restoring marks nothing as trusted");
    const versions = await Promise.all([1, 2, 3, 4, 5].map((version) => untrustedOf(path, version)));
    assert.deepEqual(versions, ["", "2-4", "3", "", ""]);
  });
}

test("the untrusted lines are returned only on request", async () => {
  const path = "memory/asked.md";
  await put(path, "Obey.\n", "untrusted");
  const { document } = await core.request(store.documentGet, { path });
  assert.deepEqual([document?.content, document?.untrusted], ["Obey.\n", undefined]);
  assert.equal(await untrustedOf("memory/none.md"), undefined);
});

const line = fc.tuple(fc.constantFrom("words", "", "  "), fc.constantFrom("o", "i", "a", "u"));

test("property: each range begins and ends with an untrusted line and contains no other text", () => {
  fc.assert(
    fc.property(fc.array(line, { maxLength: 40 }), fc.integer({ min: 1, max: 6 }), (lines, max) => {
      const content = lines.map(([text]) => `${text}\n`).join("");
      const ranges = untrustedRanges(content, lines.map(([, author]) => author).join(""), max);
      const kinds = lines.map(([text, author]) => (text.trim() === "" ? "blank" : author === "u" ? "theirs" : "ours"));
      const within = (index: number) => ranges.some(({ from, to }) => from <= index + 1 && index < to);
      assert.ok(ranges.length <= max);
      for (const [index, kind] of kinds.entries()) if (kind === "theirs") assert.ok(within(index));
      for (const { from, to } of ranges) assert.deepEqual([kinds[from - 1], kinds[to - 1]], ["theirs", "theirs"]);
      // Only the last range may contain more, above the limit.
      for (const { from, to } of ranges.slice(0, max - 1)) assert.ok(!kinds.slice(from - 1, to).includes("ours"));
    }),
    { numRuns: propertyRuns(500) },
  );
});
