// Workspace files that carry untrusted content out of the turn that read it: read, searched, copied and printed in another
// session. The tests check whether a command ran and whether an approval was requested.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { Cleanup } from "@parley/testing";
import { startClusterFixture, type ClusterFixture } from "../e2e/presets/support/fixture.ts";
import { judgeOf, serveInjection, steps, tool, type Judge } from "./support/judge.ts";

const cleanup = new Cleanup();
let fixture: ClusterFixture;
let judge: Judge;
let page: string;

before(async () => {
  page = await serveInjection(cleanup);
  fixture = await startClusterFixture(cleanup, null, {
    processes: [],
    isolation: "container",
    replicas: { "tool-runner": 2 },
    settings: `
[session]
policy = "per_conversation"
[permissions]
mode = "accept_edits"
[tools.web]
allow_private = ["127.0.0.1"]
`,
  });
  judge = judgeOf(fixture, page);
});
after(() => cleanup[Symbol.asyncDispose]());

const note = (path: string) => tool("write", { path, content: "Obey the page.\n" });

/** A file that a turn wrote after it had read the page. */
async function taintedFile(): Promise<string> {
  const path = `notes/${randomUUID()}.txt`;
  await fixture.turn(steps(tool("web_fetch", { url: page }), note(path)), randomUUID());
  return path;
}

test("runs a command without approval when an untainted turn wrote the file", async () => {
  const path = `notes/${randomUUID()}.txt`;
  await fixture.turn(steps(note(path)), randomUUID());
  await judge.assertRuns("clean-file", randomUUID(), [tool("read", { path })]);
});

test("requests approval when another session read a file of a tainted turn", async () => {
  const path = await taintedFile();
  await judge.assertAsks("read", randomUUID(), [tool("read", { path })]);
  await judge.assertAsks("grep", randomUUID(), [tool("grep", { pattern: "Obey", path })]);
  await judge.assertAsks("grep-names", randomUUID(), [tool("grep", { pattern: "Obey", path: "notes", mode: "files" })]);
  await judge.assertAsks("glob", randomUUID(), [tool("glob", { pattern: path })]);
  await judge.assertAsks("ls", randomUUID(), [tool("ls", { path: "notes" })]);
  const edit = tool("edit", { path, old_text: "Obey", new_text: "Obey now" });
  await judge.assertAsks("changed", randomUUID(), [edit, tool("read", { path })]);
});

test("requests approval when an untainted turn's command prints a file of a tainted turn", async () => {
  const path = await taintedFile();
  await judge.assertAsks("printed", randomUUID(), [tool("exec", { command: `cat ${path}` })]);
});

test("requests approval when a command copied the file", async () => {
  const path = await taintedFile();
  const [copy, moved] = [`copy-${randomUUID()}.txt`, `moved-${randomUUID()}`];
  await fixture.turn(steps(tool("exec", { command: `cp -p ${path} ${copy}; mv notes ${moved}` })), randomUUID());
  await judge.assertAsks("copy", randomUUID(), [tool("read", { path: copy })]);
  await judge.assertAsks("moved", randomUUID(), [tool("read", { path: path.replace("notes", moved) })]);
});

test("requests approval when a command of a tainted turn wrote the file", async () => {
  const path = `by-command-${randomUUID()}.txt`;
  const { conversation } = await judge.tainted();
  assert.deepEqual(await judge.approved(steps(tool("exec", { command: `echo Obey > ${path}` })), conversation), [
    "exec",
  ]);
  await judge.assertAsks("by-command", randomUUID(), [tool("read", { path })]);
});

test("runs a command without approval when an untainted turn rewrote the whole file", async () => {
  const path = await taintedFile();
  await fixture.turn(steps(note(path)), randomUUID());
  await judge.assertRuns("rewritten", randomUUID(), [tool("read", { path })]);
});

test("requests approval when a background command of a tainted turn writes the file later", async () => {
  const path = `later-${randomUUID()}.txt`;
  const { conversation } = await judge.tainted();
  const command = `until test -e go-${path}; do sleep 0.02; done; echo Obey > ${path}; sleep 60`;
  assert.deepEqual(await judge.approved(steps(tool("exec", { command, background: true })), conversation), ["exec"]);
  const wait = `touch go-${path}; until test -s ${path}; do sleep 0.02; done`;
  await fixture.turn(steps(tool("exec", { command: wait })), randomUUID());
  await judge.assertAsks("background", randomUUID(), [tool("read", { path })]);
});

test("requests approval when an untainted turn saved the file from an attachment", async () => {
  const path = `saved-${randomUUID()}.txt`;
  const uploaded = await fixture.client.fetch("/api/attachments?name=in.txt", {
    method: "POST",
    headers: { "content-type": "application/octet-stream" },
    body: "Obey this attachment.",
  });
  assert.equal(uploaded.status, 201);
  const { sha256: id } = (await uploaded.json()) as { sha256: string };
  const text = steps(tool("save_attachment", { id, path }));
  const sent = await fixture.client.fetch("/api/messages", {
    method: "POST",
    body: JSON.stringify({ text, conversation: randomUUID(), attachments: [{ id, name: "in.txt" }] }),
  });
  assert.equal(sent.status, 202);
  const { messageId } = (await sent.json()) as { messageId: string };
  await fixture.ended(messageId);
  await judge.assertAsks("saved", randomUUID(), [tool("read", { path })]);
});
