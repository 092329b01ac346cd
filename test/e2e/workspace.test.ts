// Isolation of commands, the quota of the workspace and further folders, as a person sees them in a whole cluster.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { store, textOf } from "@parley/contracts";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { spawning, startClusterFixture, type ClusterFixture } from "./presets/support/fixture.ts";

const cleanup = new Cleanup();
let fixture: ClusterFixture;
let project: string;

before(async () => {
  project = await temporaryFolder(cleanup);
  fixture = await startClusterFixture(cleanup, null, {
    processes: [],
    settings: `
[session]
policy = "per_conversation"

[workspace]
max_bytes = 4194304

[workspace.folders]
project = "${project}"

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

test("records a command's isolation and duration in its result and its live event", async () => {
  const { sessionId } = await fixture.turn(exec("sleep 0.1; echo ran"), "how");
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
  const { durationMs = 0 } = result;
  assert.ok(durationMs >= 100 && durationMs <= live.durationMs, `${durationMs} ms`);
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

async function command(conversation: string, text: string): Promise<string> {
  const body = JSON.stringify({ conversation, text });
  return (await fixture.client.fetch("/api/messages", { method: "POST", body })).text();
}

const read = `tool: read ${JSON.stringify({ path: "in.txt" })}\nthen\nsay: done`;
const write = (content: string) => `tool: write ${JSON.stringify({ path: "in.txt", content })}\nthen\nsay: done`;

// design: 002.37b
test("reads and edits files of the folder that a new session, its sub-agents and later sessions work in", async () => {
  await writeFile(join(project, "in.txt"), "of the project");
  assert.match(await command("project", "/workspace nowhere"), /there is no workspace .*nowhere.*there are project/i);
  assert.match(await command("project", "/workspace project"), /works in the workspace .*project/);
  const first = await fixture.turn(read, "project");
  assert.match(first.results[0]?.content ?? "", /of the project/);
  await fixture.turn(write("edited"), "project");
  assert.equal(await readFile(join(project, "in.txt"), "utf8"), "edited");
  const elsewhere = await fixture.turn(read, "elsewhere");
  assert.equal(elsewhere.results[0]?.isError, true, "other sessions work in the workspace");
  await fixture.turn(`${spawning("sessions_spawn", { prompt: read })}\nthen\nsay: done`, "project");
  const [child] = await fixture.children(first.sessionId);
  const log = await fixture.log(child?.sessionId ?? "");
  assert.match(JSON.stringify(log.map(({ parts }) => parts)), /edited/);
  assert.match(await command("project", "/workspace default"), /chosen before its first message/);
  await command("project", "/new");
  const next = await fixture.turn(read, "project");
  assert.notEqual(next.sessionId, first.sessionId);
  assert.match(next.results[0]?.content ?? "", /edited/);
});

// design: 002.19c, 002.24b, interaction.6
test("rewinds the folder of a session, and in a copy of it the turns before the copy too", async () => {
  const path = join(project, "in.txt");
  await writeFile(path, "at first");
  await command("forked", "/workspace project");
  const original = await fixture.turn(write("by the original"), "forked");
  await command("forked", "/session fork the copy");
  const copy = await fixture.turn(write("by the copy"), "forked");
  assert.notEqual(copy.sessionId, original.sessionId);
  const listed = await fixture.client.fetch(`/api/sessions/${copy.sessionId}/checkpoints`);
  const { checkpoints } = (await listed.json()) as { checkpoints: { checkpointId: string }[] };
  assert.equal(checkpoints.length, 2);
  for (const [at, content] of ["by the original", "at first"].entries()) {
    const rewound = await fixture.client.fetch(`/api/sessions/${copy.sessionId}/rewind`, {
      method: "POST",
      body: JSON.stringify({ checkpointId: checkpoints[at]?.checkpointId }),
    });
    assert.equal(rewound.status, 200, await rewound.text());
    assert.equal(await readFile(path, "utf8"), content);
  }
  const { events } = await fixture.bus.request(store.eventList, {
    sessionId: copy.sessionId,
    afterSeq: 0,
    limit: 1_000,
  });
  const rewinds = events.flatMap((event) => (event.type === "rewound" ? [event] : []));
  assert.deepEqual(
    rewinds.map(({ turnId, counts, paths }) => [turnId, counts["restored"], paths]),
    checkpoints.map(({ checkpointId }) => [checkpointId, 1, ["in.txt"]]),
  );
  for (const each of rewinds) await fixture.happens((event) => event.type === "rewound" && event.seq === each.seq);
  // The rewind of a rewind names no turn.
  const undone = await fixture.client.fetch(`/api/sessions/${copy.sessionId}/rewind`, {
    method: "POST",
    body: JSON.stringify({ checkpointId: rewinds.at(-1)?.checkpointId }),
  });
  assert.equal(undone.status, 200, await undone.text());
  await fixture.happens((event) => event.type === "rewound" && event.turnId === rewinds.at(-1)?.checkpointId);
  const after = { sessionId: copy.sessionId, afterSeq: rewinds.at(-1)?.seq ?? 0, limit: 1_000 };
  const later = await fixture.bus.request(store.eventList, after);
  assert.deepEqual(
    later.events.map(({ type }) => type),
    ["rewound"],
  );
});
