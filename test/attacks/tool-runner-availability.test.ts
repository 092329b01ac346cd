// One person or one MCP server cannot make the tools unavailable to others: tested on a whole cluster by the answers to others.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { toolCatalog } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { startClusterFixture, type ClusterFixture } from "../e2e/presets/support/fixture.ts";

const cleanup = new Cleanup();
let fixture: ClusterFixture;
let workspace: string;
/** Time limit for other people's calls on a busy machine, in milliseconds; the defects delayed them by minutes, or for ever. */
const answeredMs = 30_000;

const call = (tool: string, input: unknown) => `tool: ${tool} ${JSON.stringify(input)}`;
const inOrder = (...calls: string[]) => [...calls, "say: done"].join("\nthen\n");

/** Another session reads a file and runs a command. */
async function othersWork(conversation: string): Promise<void> {
  const turn = await fixture.turn(
    inOrder(call("read", { path: "shared.txt" }), call("exec", { command: "echo from-exec" })),
    conversation,
  );
  const [read, exec] = turn.results.map(({ content }) => content);
  assert.match(read ?? "", /shared words/);
  assert.match(exec ?? "", /from-exec/);
}

before(async () => {
  fixture = await startClusterFixture(cleanup, null, {
    processes: [],
    settings: `
[session]
policy = "per_conversation"

[permissions]
allow = ["read", "write", "edit", "exec", "apply_patch"]

[mcp.servers.hanging]
command = "sleep"
args = ["100000"]
start_timeout_seconds = 600
`,
  });
  workspace = join(fixture.cluster.home, "workspace");
  await mkdir(workspace, { recursive: true });
  await writeFile(join(workspace, "shared.txt"), "shared words\n");
});
after(() => cleanup[Symbol.asyncDispose]());

test("answers with the available tools when an MCP server hangs", async () => {
  await othersWork("first");
  // The request is given up long before the server's start is.
  const { tools, mcp } = await fixture.bus.request(toolCatalog, {});
  assert.ok(["read", "write", "exec"].every((name) => tools.some((tool) => tool.name === name)));
  assert.deepEqual(
    mcp?.map(({ server, state }) => [server, state]),
    [["hanging", "starting"]],
  );
});

test("reads and runs commands for others when lock files and files are pipes", { timeout: 120_000 }, async () => {
  const names = Array.from({ length: 8 }, (_, n) => `blocked-${n}.txt`);
  // Names of the lock files, at their old and their current location.
  const script = [
    "mkdir -p .parley/locks ../.workspace-state/locks",
    `for name in ${names.join(" ")}; do`,
    "  lock=$(printf %s $name | sha256sum | cut -c 1-32)",
    "  mkfifo .parley/locks/$lock ../.workspace-state/locks/$lock pipe-$name",
    "done",
  ].join("\n");
  await fixture.turn(inOrder(call("exec", { command: script })), "attacker");
  const writes = names.flatMap((path) => [
    call("write", { path, content: "x" }),
    call("read", { path: `pipe-${path}` }),
    call("edit", { path: `pipe-${path}`, old_text: "a", new_text: "b" }),
  ]);
  const blocked = await fixture.client.post([...writes, "then", "say: done"].join("\n"), { conversation: "attacker" });
  const begun = performance.now();
  await othersWork("second");
  assert.ok(performance.now() - begun < answeredMs, "others were held up");
  const { results } = await fixture.ended(blocked);
  assert.equal(results.filter(({ content }) => content.startsWith('Created "blocked-')).length, names.length);
});

test("writes for others when `.parley` of the workspace is a link that leads out", async () => {
  await fixture.turn(inOrder(call("exec", { command: "rm -rf .parley && ln -s /tmp .parley" })), "attacker");
  const { results } = await fixture.turn(inOrder(call("write", { path: "after.txt", content: "x" })), "third");
  assert.match(results[0]?.content ?? "", /^Created "after\.txt"/);
});

const hostile = {
  "a patch nearly matches at millions of places": call("apply_patch", {
    patch: [
      "*** Begin Patch",
      "*** Update File: lines.txt",
      "@@",
      ...Array.from({ length: 400 }, () => "-a"),
      "-b",
      "+c",
      "*** End Patch",
    ].join("\n"),
  }),
  "an edit nearly matches at millions of places": call("edit", {
    path: "letters.txt",
    old_text: `${"a".repeat(50_000)}b${"a".repeat(50_000)}`,
    new_text: "c",
  }),
  "an edit matches on every line": call("edit", { path: "lines.txt", old_text: "a", new_text: "c" }),
};

for (const [what, input] of Object.entries(hostile)) {
  test(`reads and runs commands for others when ${what}`, { timeout: 120_000 }, async () => {
    await writeFile(join(workspace, "lines.txt"), "a\n".repeat(4_500_000));
    await writeFile(join(workspace, "letters.txt"), "a".repeat(9_000_000));
    const working = await fixture.client.post(inOrder(input), { conversation: "attacker" });
    const turnId = await fixture.begun(working);
    await fixture.happens((event) => event.type === "tool.started" && event.turnId === turnId);
    const begun = performance.now();
    await othersWork(what);
    assert.ok(performance.now() - begun < answeredMs, "others were held up");
    const { results } = await fixture.ended(working);
    assert.equal(results.at(-1)?.isError, true);
    assert.match(results.at(-1)?.content ?? "", /were not found in the file|occurs \d+ times/);
  });
}
