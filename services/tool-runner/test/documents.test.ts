// Documents as the model sees them: under their usual paths, on a real store, from two replicas at once.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Bus } from "@parley/bus";
import { store, toolRequirements } from "@parley/contracts";
import {
  Cleanup,
  openTestBus,
  openTestCall,
  startStoreStack,
  type StoreStack,
  testBaseConfig,
  type TestCall,
} from "@parley/testing";
import { readConfig } from "../src/config.ts";
import { noCheckpoint } from "../src/snapshots/recorder.ts";
import { Documents } from "../src/documents/documents.ts";
import { documentsOverBus } from "../src/documents/client.ts";
import { createRegistry, runTool } from "../src/tool/registry.ts";
import { start } from "../src/service.ts";
import type { ToolOutput } from "../src/tool/tool.ts";
import { editTool } from "../src/tools/edit.ts";
import { globTool } from "../src/tools/glob.ts";
import { grepTool } from "../src/tools/grep.ts";
import { lsTool } from "../src/tools/ls.ts";
import { notebookEditTool } from "../src/tools/notebook-edit.ts";
import { readTool } from "../src/tools/read.ts";
import { writeTool } from "../src/tools/write.ts";
import { makeWorkspaceFixture, type WorkspaceFixture } from "./support/workspace-fixture.ts";

const cleanup = new Cleanup();
const registry = createRegistry([editTool, globTool, grepTool, lsTool, notebookEditTool, readTool, writeTool]);
let stack: StoreStack;
let owner: Bus;
let ground: WorkspaceFixture;
let replicas: Documents[];
let open: TestCall;

before(async () => {
  stack = await startStoreStack(cleanup);
  owner = await stack.bus("channel-gateway");
  ground = await makeWorkspaceFixture();
  cleanup.add(async () => ground[Symbol.asyncDispose]());
  open = await openTestCall(stack);
  replicas = await Promise.all(
    ["one", "two"].map(async () => new Documents(documentsOverBus(await stack.bus("tool-runner"), open.grant))),
  );
});
after(() => cleanup[Symbol.asyncDispose]());

/** Runs a call on one of the replicas; an unexpected exception fails the test. */
async function call(tool: string, args: unknown, more: { replica?: number; key?: string } = {}): Promise<ToolOutput> {
  const bugs: unknown[] = [];
  const key = more.key ?? `${randomUUID()}:1`;
  const output = await runTool(
    registry,
    tool,
    JSON.stringify(args),
    {
      workspace: ground.workspace,
      documents: replicas[more.replica ?? 0] ?? null,
      searcher: ground.searcher,
      checkpoint: noCheckpoint,
      signal: new AbortController().signal,
      grant: open.grant,
      sessionId: randomUUID(),
      turnId: randomUUID(),
      tainted: false,
      idempotencyKey: key,
      callName: "call",
    },
    (error) => bugs.push(error),
  );
  if (bugs.length > 0) throw bugs[0];
  return output;
}

const stored = async (path: string) => (await owner.request(store.documentGet, { path })).document;
const ownerPuts = (path: string, content: string) =>
  owner.request(store.documentPut, { opId: randomUUID(), path, content, author: "owner" });

test("finds nothing in a folder of documents that is still empty", async () => {
  for (const path of ["memory", "skills"]) {
    assert.equal((await call("grep", { pattern: "x", path })).content, "No match in 0 files.");
    assert.equal((await call("glob", { pattern: "*", path })).content, "No file matches.");
  }
});

test("stores text written to a document path, with its author and turn, and not on disk", async () => {
  const { turnId } = open;
  const written = await call("write", { path: "./notes/../MEMORY.md", content: "# Facts\n" });
  assert.deepEqual(written, { content: 'Created "MEMORY.md": 1 line, 8 bytes, version 1.', isError: false });
  const document = await stored("MEMORY.md");
  assert.deepEqual([document?.content, document?.author, document?.turnId], ["# Facts\n", "agent", turnId]);
  assert.deepEqual(await readdir(ground.inside), []);
  assert.equal((await call("read", { path: "/workspace/MEMORY.md" }, { replica: 1 })).content, "     1\t# Facts");
});

test("does not undo later changes when a write is rerun after its response was lost", async () => {
  const key = `${randomUUID()}:1`;
  await call("write", { path: "memory/rerun.md", content: "first" }, { key });
  await ownerPuts("memory/rerun.md", "newer");
  const again = await call("write", { path: "memory/rerun.md", content: "first" }, { key, replica: 1 });
  assert.equal(again.isError, false);
  assert.equal((await stored("memory/rerun.md"))?.content, "newer");
});

test("applies all concurrent edits of one document by two replicas", async () => {
  const count = 24;
  const line = (index: number) => `item ${String(index).padStart(2, "0")}: open`;
  await ownerPuts("memory/list.md", Array.from({ length: count }, (_, index) => line(index)).join("\n"));
  // Four at a time: with more writers, an edit may fail and ask the model to try again.
  for (let first = 0; first < count; first += 4) {
    const answers = await Promise.all(
      [0, 1, 2, 3].map((offset) => {
        const index = first + offset;
        const args = { path: "memory/list.md", old_text: line(index), new_text: `item ${index}: done` };
        return call("edit", args, { replica: index % 2 });
      }),
    );
    assert.deepEqual(
      answers.map(({ isError }) => isError),
      [false, false, false, false],
    );
  }
  const text = (await stored("memory/list.md"))?.content ?? "";
  assert.deepEqual(
    text.split("\n"),
    Array.from({ length: count }, (_, index) => `item ${index}: done`),
  );
});

test("reports a conflict when another writer changed the edited passage, and changes nothing", async () => {
  await ownerPuts("memory/gone.md", "old words");
  let looks = 0;
  const theirs = replicas[1];
  assert.ok(theirs !== undefined);
  const result = await theirs.edit("memory/gone.md", async (text) => {
    looks += 1;
    return text.includes("old")
      ? { text: text.replace("old", "my"), answer: "mine" }
      : { text: undefined, answer: text };
  });
  assert.deepEqual([result, looks], [{ status: "answered", answer: "mine" }, 1]);
  const racing = new Documents({
    ...documentsOverBus(await openTestBus(stack.nats, "tool-runner", cleanup), open.grant),
    // Another writer changes the document between the read and the write.
    get: async (path) => {
      const seen = await stored(path);
      if (seen?.content === "my words") await ownerPuts(path, "their words");
      return seen;
    },
  });
  const refused = await racing.edit("memory/gone.md", async (text) => ({
    text: text.startsWith("my") ? "lost" : undefined,
    answer: text,
  }));
  assert.deepEqual(refused, { status: "answered", answer: "their words" });
  assert.equal((await stored("memory/gone.md"))?.content, "their words");
});

test("edits documents with the same results as files", async () => {
  await ownerPuts("USER.md", "tea\ntea\n");
  const twice = await call("edit", { path: "USER.md", old_text: "tea", new_text: "coffee" });
  assert.match(twice.content, /occurs 2 times in "USER.md" \(lines 1, 2\)/);
  const all = await call("edit", { path: "USER.md", old_text: "tea", new_text: "coffee", replace_all: true });
  assert.equal(all.content, 'Edited "USER.md": 2 occurrences replaced, the first at line 1.');
  assert.equal((await stored("USER.md"))?.content, "coffee\ncoffee\n");
  assert.match(
    (await call("edit", { path: "SOUL.md", old_text: "a", new_text: "b" })).content,
    /"SOUL.md" does not exist/,
  );
});

test("lists documents with the files on disk, and hides disk entries with document names", async () => {
  await writeFile(join(ground.inside, "code.ts"), "let a;\n");
  await writeFile(join(ground.inside, "MEMORY.md"), "made by a command\n");
  await mkdir(join(ground.inside, "memory"));
  await writeFile(join(ground.inside, "memory", "disk.md"), "made by a command\n");
  await ownerPuts("skills/deploy/SKILL.md", "---\nname: deploy\n---\n");
  await ownerPuts("skills/deploy/run.sh", "echo\n");
  const root = (await call("ls", {})).content.split("\n").map((line) => line.split(/\s+/));
  assert.deepEqual(
    root.map(([type, size, name]) => [type, size, name]),
    [
      ["file", "8", "MEMORY.md"],
      ["file", "14", "USER.md"],
      ["file", "7", "code.ts"],
      ["dir", "-", "memory/"],
      ["dir", "-", "skills/"],
    ],
  );
  assert.match((await call("ls", { path: "skills" })).content, /^dir +- +deploy\/$/);
  assert.match((await call("ls", { path: "skills/deploy" })).content, /SKILL\.md\n.*run\.sh$/);
  assert.match((await call("ls", { path: "MEMORY.md" })).content, /^file +8 +MEMORY\.md$/);
  assert.match((await call("ls", { path: "SOUL.md" })).content, /does not exist/);
  assert.match((await call("ls", { path: "skills/none" })).content, /does not exist/);
  assert.doesNotMatch((await call("ls", { path: "memory" })).content, /disk\.md/);
  assert.match((await call("read", { path: "memory/disk.md" })).content, /does not exist/);
  assert.match((await call("read", { path: "skills" })).content, /is a directory; list it with ls/);
});

test("finds documents and files with grep and glob, each under its own path", async () => {
  await ownerPuts("memory/2026-11-21.md", "calm\nneedle one\r\n");
  await ownerPuts("skills/deploy/notes.txt", "needle two");
  await mkdir(join(ground.inside, "src"), { recursive: true });
  await writeFile(join(ground.inside, "src", "a.md"), "needle three\n");
  const everywhere = await call("grep", { pattern: "needle" });
  assert.deepEqual(everywhere.content.split("\n"), [
    "memory/2026-11-21.md:2: needle one",
    "skills/deploy/notes.txt:1: needle two",
    "src/a.md:1: needle three",
  ]);
  assert.equal(
    (await call("grep", { pattern: "NEEDLE", ignore_case: true, path: "memory", include: "2026-*.md" })).content,
    "memory/2026-11-21.md:2: needle one",
  );
  assert.equal(
    (await call("grep", { pattern: "needle", path: "memory/2026-11-21.md" })).content,
    "memory/2026-11-21.md:2: needle one",
  );
  assert.match((await call("grep", { pattern: "needle", limit: 1 })).content, /^memory.*\n\[Truncated/);
  const found = (await call("glob", { pattern: "**/*.md" })).content.split("\n");
  assert.ok(found.includes("memory/2026-11-21.md") && found.includes("src/a.md") && found.includes("MEMORY.md"));
  assert.ok(!found.includes("memory/disk.md"));
  assert.equal((await call("glob", { pattern: "*.txt", path: "skills" })).content, "skills/deploy/notes.txt");
  assert.match((await call("glob", { pattern: "*", path: "skills/none" })).content, /does not exist/);
});

test("finds a removed document on neither replica", async () => {
  await ownerPuts("memory/brief.md", "passing words");
  for (const replica of [0, 1])
    assert.match((await call("grep", { pattern: "passing" }, { replica })).content, /brief/);
  await owner.request(store.documentRevise, {
    opId: randomUUID(),
    path: "memory/brief.md",
    change: { do: "delete", author: "owner" },
  });
  for (const replica of [0, 1]) {
    assert.match((await call("grep", { pattern: "passing" }, { replica })).content, /No match/);
    assert.match((await call("read", { path: "memory/brief.md" }, { replica })).content, /does not exist/);
  }
});

test("rejects an invalid document with an explanation, and writes nothing", async () => {
  const before = await readdir(join(ground.inside, "memory"));
  const png = await call("write", { path: "memory/photo.png", content: "x" });
  assert.deepEqual(png, {
    content: '"memory/photo.png" cannot be written: notes below memory/ are Markdown: their names must end in .md.',
    isError: true,
  });
  assert.match((await call("write", { path: "skills/loose.md", content: "x" })).content, /a skill is a folder/);
  assert.match((await call("write", { path: "memory", content: "x" })).content, /cannot be written/);
  assert.match(
    (await call("write", { path: "MEMORY.md", content: "x".repeat(300_000) })).content,
    /Not written: MEMORY\.md: 300000 bytes/,
  );
  assert.deepEqual(await readdir(join(ground.inside, "memory")), before);
});

test("reports missing programs and variables by name", async () => {
  const env = { PARLEY_WORKSPACE: ground.inside, PARLEY_EXEC_ISOLATION: "off", WEATHER_KEY: "secret", EMPTY: "" };
  const config = readConfig(
    { ...env, PATH: process.env["PATH"] ?? "/usr/bin:/bin" },
    testBaseConfig(stack.nats, "tool-runner", { ...env, PARLEY_REPLICA: "probe" }),
  );
  const runner = await start(config);
  const core = await stack.bus("agent-core");
  const answer = await core.request(toolRequirements, {
    bins: ["sh", "no-such-program", "../bin/sh", "/bin/sh"],
    env: ["WEATHER_KEY", "EMPTY", "OTHER_KEY"],
  });
  await runner.close();
  assert.deepEqual(answer, {
    missingBins: ["no-such-program", "../bin/sh", "/bin/sh"],
    missingEnv: ["EMPTY", "OTHER_KEY"],
  });
});

test("edits the cells of a notebook that is a document", async () => {
  await ownerPuts("skills/plot/plot.ipynb", '{"nbformat":4,"metadata":{},"cells":[]}');
  const args = { path: "skills/plot/plot.ipynb", edit_mode: "insert", cell_type: "markdown", new_source: "# Plot" };
  assert.match(
    (await call("notebook_edit", args)).content,
    /^Inserted cell 1 \(markdown\) in "skills\/plot\/plot\.ipynb"/,
  );
  assert.match((await stored("skills/plot/plot.ipynb"))?.content ?? "", /"source":\["# Plot"\]/);
});
