// The defaults of `memory_search`, on a real store.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, test } from "node:test";
import { store } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { Memory } from "../../src/memory/memory.ts";
import { memorySearchTool } from "../../src/tools/memory-search.ts";
import { openToolContext } from "./tool-context.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

// design: 000.19
test("returns the six best passages, also those with a low score, unless the call says otherwise", async () => {
  const room = await openToolContext(cleanup);
  for (let note = 1; note <= 8; note++) {
    const document = {
      path: `memory/note-${note}.md`,
      content: `- Bed ${note} has a tulip.`,
      author: "owner",
    } as const;
    await room.gateway.request(store.documentPut, { opId: randomUUID(), ...document, expectedVersion: 0 });
  }
  const context = await room.call("memory_search", "pure");
  const memory = new Memory({ ...context, embedder: null });
  cleanup.add(async () => memory.close());
  const search = async (more: object = {}) => {
    const query = "tulip barometer locksmith viaduct saxophone harbour";
    const outcome = await memorySearchTool(memory).run(JSON.stringify({ query, ...more }), context);
    assert.ok(outcome.status === "done");
    return Array.from(outcome.content.matchAll(/ score (\d\.\d\d)$/gm), ([, score]) => Number(score));
  };
  const scores = await search();
  assert.equal(scores.length, 6);
  for (const score of scores) assert.ok(score < 0.35, String(score));
  assert.equal((await search({ max_results: 8 })).length, 8);
  assert.deepEqual(await search({ min_score: 0.35 }), []);
});
