// Which note `memory_write` writes to, and what it reports when the call runs again.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { store } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { memoryWriteTool } from "../../src/tools/memory-write.ts";
import { openToolContext, type ToolContextFixture } from "./tool-context.ts";

const cleanup = new Cleanup();
let room: ToolContextFixture;

before(async () => {
  room = await openToolContext(cleanup);
});
after(() => cleanup[Symbol.asyncDispose]());

test("reports the note of the first run when a call runs again on a later day", async () => {
  const context = await room.call("memory_write", "idempotent");
  const turn = { ...context.turn, startedAt: "2026-03-01T23:50:00.000Z" };
  const input = JSON.stringify({ content: "Called the plumber.", category: "daily" });
  const path = "memory/2026-03-01.md";
  for (const run of ["first", "second"]) {
    const outcome = await memoryWriteTool.run(input, { ...context, turn });
    assert.ok(outcome.status === "done", run);
    assert.match(outcome.content, /^Written to memory\/2026-03-01\.md, line 3\.$/, run);
  }
  const { document } = await room.gateway.request(store.documentGet, { path });
  assert.equal(document?.content, "# 2026-03-01\n\n- 23:50 Called the plumber.\n");
});
