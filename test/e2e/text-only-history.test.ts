// Prompts without the tool traffic of past turns, in a whole cluster.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Cleanup } from "@parley/testing";
import { startClusterFixture, type ClusterFixture } from "./presets/support/fixture.ts";

const cleanup = new Cleanup();
let fixture: ClusterFixture;

before(async () => {
  fixture = await startClusterFixture(cleanup, null, {
    processes: [],
    settings: `
[session]
policy = "per_conversation"
[context]
history = "text_only"
[agent]
max_output_tokens = 1000
[models.known.rehearsal]
context_window = 40000
[compaction]
keep_last = 1
keep_share = 0
`,
  });
  const workspace = join(fixture.cluster.home, "workspace");
  await mkdir(workspace, { recursive: true });
  await writeFile(join(workspace, "long.txt"), "words and words and words\n".repeat(1_800));
});
after(() => cleanup[Symbol.asyncDispose]());

test("compacts in time when requests omit most of what the session contains", async () => {
  const said = (characters: number) => "words of the owner\n".repeat(characters / 19);
  for (let turn = 0; turn < 4; turn++) await fixture.turn('tool: read {"path":"long.txt"}\nthen\nsay: read');
  // About as many tokens as the texts of the request and its prefix have; the results of the session have three times as many.
  await fixture.turn(`${said(36_000)}usage: 20000 1\nsay: read`);
  assert.ok(!fixture.events.some(({ type }) => type === "compacted"));
  const turn = await fixture.turn(`${said(60_000)}say: read`);
  const event = await fixture.happens(({ type }) => type === "compacted");
  assert.ok(event.type === "compacted" && event.turnId === turn.turnId);
  assert.equal(event.trigger, "share");
});
