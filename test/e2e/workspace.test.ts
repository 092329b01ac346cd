// Isolation of commands and the quota of the workspace, as a person sees them in a whole cluster.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { textOf } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { startClusterFixture, type ClusterFixture } from "./presets/support/fixture.ts";

const cleanup = new Cleanup();
let fixture: ClusterFixture;

before(async () => {
  fixture = await startClusterFixture(cleanup, null, {
    processes: [],
    settings: `
[workspace]
max_bytes = 4194304

[permissions]
allow = ["*"]
`,
  });
});
after(() => cleanup[Symbol.asyncDispose]());

const exec = (command: string) => `tool: exec ${JSON.stringify({ command })}\nthen\nsay: done`;

test("refuses to arm a fault point of a service that runs in the test's process", async () => {
  await assert.rejects(
    fixture.cluster.fault("tool.running", "kill"),
    /never fires: tool-runner runs in the test's process/,
  );
});

test("records a command's isolation in its result, its live event and the model's text", async () => {
  const { sessionId } = await fixture.turn(exec("echo ran"), "how");
  const results = (await fixture.log(sessionId)).flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === "tool_result" ? [part] : [])),
  );
  const [result] = results;
  assert.ok(
    result?.isolation !== undefined && ["bubblewrap", "container", "gvisor", "none"].includes(result.isolation),
  );
  assert.match(result.content, new RegExp(`isolation: ${result.isolation}`, "i"));
  const live = fixture.events.find((event) => event.type === "tool.finished");
  assert.ok(live?.type === "tool.finished" && live.isolation === result.isolation);
});

test("refuses a file with instructions when the workspace is full, and accepts it later", async () => {
  const { sessionId } = await fixture.turn(exec("head -c 5000000 /dev/urandom > big"), "full");
  const write = `tool: write ${JSON.stringify({ path: "note.txt", content: "hello" })}\nthen\nsay: done`;
  await fixture.turn(write, "full");
  await fixture.turn(exec("rm big"), "full");
  await fixture.turn(write, "full");
  const written = (await fixture.log(sessionId)).flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === "tool_result" && part.name === "write" ? [part] : [])),
  );
  assert.deepEqual(
    written.map(({ isError }) => isError),
    [true, false],
  );
  assert.match(written[0]?.content ?? "", /The workspace is full: .* Delete files that are no longer needed/);
});

test("stops only the background command that fills the workspace", async () => {
  const begin = (command: string) =>
    fixture.turn(`tool: exec ${JSON.stringify({ command, background: true })}\nthen\nsay: it runs`, "other");
  /** The exit notices that people received. */
  const told = (words: RegExp) =>
    fixture.happens(
      (event) =>
        event.type === "message" && event.message.from?.origin === "process" && words.test(textOf(event.message.parts)),
    );
  await begin("while [ ! -e go ]; do sleep 0.05; done; echo it went on");
  await begin("while true; do head -c 6000000 /dev/urandom > filling; done");
  await told(/Stopped: the workspace exceeded its quota/);
  await fixture.turn(exec("rm filling; touch go"), "other");
  await told(/exit code 0[^]*it went on/);
});
