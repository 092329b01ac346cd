// Checkpoints and rewinds on a real store and real tool-runners: a rewind restores what a turn changed, also after a crash.
import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  statSync,
  symlinkSync,
  unlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Bus } from "@parley/bus";
import {
  checkpointRewind,
  store,
  toolCatalog,
  WireError,
  type RewindReport,
  type RewoundFile,
  type ToolClass,
} from "@parley/contracts";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { ContentStore } from "../src/snapshots/content-store.ts";
import { collect } from "../src/snapshots/collect.ts";
import { CheckpointRecorder } from "../src/snapshots/recorder.ts";
import { createCheckpointClient } from "../src/snapshots/checkpoint-client.ts";
import type { Config } from "../src/config.ts";
import { start } from "../src/service.ts";
import { openWorkspace } from "../src/workspace/workspace.ts";
import { kill, killed, launch } from "./support/launch.ts";
import { openRunnerFixture, type RunnerFixture } from "./support/runner-fixture.ts";

const cleanup = new Cleanup();
let fixture: RunnerFixture;
let gateway: Bus;
let runnerBus: Bus;
let workspace: string;
let blobs: string;

before(async () => {
  fixture = await openRunnerFixture(cleanup);
  [gateway, runnerBus] = await Promise.all([fixture.stack.bus("channel-gateway"), fixture.stack.bus("tool-runner")]);
  const config = await fixture.config("x");
  workspace = config.workspace;
  blobs = config.checkpoints.folder;
});
after(() => cleanup[Symbol.asyncDispose]());

type Call = [tool: string, toolClass: ToolClass, input: unknown];
const write = (path: string, content: string): Call => ["write", "idempotent", { path, content }];
const exec = (command: string): Call => ["exec", "once", { command }];

/** Runs a turn of the session with these calls, one at a time, and ends it. */
async function turn(sessionKey: string, calls: readonly Call[], text = "do it") {
  const requests = await fixture.plan(
    calls.map(([tool, toolClass, input]) => ({ tool, class: toolClass, input })),
    { sessionKey, text },
  );
  for (const request of requests) {
    const answer = await fixture.call(request);
    assert.equal(answer.state, "done", answer.result.content);
  }
  const { turnId, sessionId } = requests[0] ?? assert.fail("a turn has calls");
  await fixture.finish(turnId);
  return { turnId, sessionId };
}

async function rewind(
  { sessionId, turnId }: { sessionId: string; turnId: string },
  { opId = randomUUID(), dryRun = false }: { dryRun?: boolean; opId?: string } = {},
) {
  const { secret } = await permit({ sessionId, turnId }, opId);
  return gateway.request(checkpointRewind, { opId, sessionId, turnId, dryRun, secret }, { timeoutMs: 20_000 });
}

async function permit({ sessionId, turnId }: { sessionId: string; turnId: string }, rewindId: string) {
  const { secret } = await gateway.request(store.rewindPermit, { rewindId, sessionId, turnId });
  return { rewindId, secret };
}

const outcomes = (report: RewindReport) =>
  Object.fromEntries(report.files.map(({ path, outcome }): [string, RewoundFile["outcome"]] => [path, outcome]));
const reasonFor = (report: RewindReport, path: string) => report.files.find((file) => file.path === path)?.reason ?? "";
const at = (path: string) => join(workspace, path);
const text = (path: string) => readFileSync(at(path), "utf8");
const mode = (path: string) => statSync(at(path)).mode & 0o7777;
const failsWith = (code: string, message: RegExp) => (error: unknown) =>
  WireError.is(error) && error.code === code && message.test(error.message);

/** Creates a workspace folder for one test and starts a runner. */
async function workspaceNamed(name: string) {
  const local = new Cleanup();
  const running = await fixture.runner(`${name}-1`);
  local.add(() => running.close());
  mkdirSync(at(name), { recursive: true });
  return local;
}

describe("a rewind", () => {
  // design: 002.22
  test("restores content and modes after file tools and commands, and removes new files", async () => {
    await using _ = await workspaceNamed("all");
    const bytes = Buffer.from([0, 255, 10, 128, 13]);
    writeFileSync(at("all/binary"), bytes, { mode: 0o640 });
    const notebook = JSON.stringify({ nbformat: 4, metadata: {}, cells: [{ cell_type: "raw", source: "before" }] });
    writeFileSync(at("all/notes.ipynb"), notebook);
    for (const name of ["written", "edited", "redirected", "streamed", "moved", "removed"]) {
      writeFileSync(at(`all/${name}`), `${name} before\n`);
    }
    writeFileSync(at("all/script"), "#!/bin/sh\n", { mode: 0o600 });
    mkdirSync(at("all/tree/deep"), { recursive: true });
    writeFileSync(at("all/tree/deep/leaf"), "leaf\n", { mode: 0o444 });
    symlinkSync("deep/leaf", at("all/tree/link"));
    const ended = await turn("all", [
      write("all/written", "after"),
      write("all/new/folder/file", "new"),
      ["edit", "once", { path: "all/edited", old_text: "before", new_text: "after" }],
      ["notebook_edit", "once", { path: "all/notes.ipynb", cell_number: 1, edit_mode: "delete" }],
      exec(
        "cd all && echo after > redirected && rm binary && sed -i s/before/after/ streamed && chmod 755 script && mv moved moved-away && rm -r tree && mkdir made && touch made/empty && rm removed",
      ),
    ]);
    assert.equal(existsSync(at("all/tree")), false);
    assert.notEqual(text("all/notes.ipynb"), notebook);
    const report = await rewind(ended);
    assert.deepEqual(outcomes(report), {
      "all/binary": "restored",
      "all/edited": "restored",
      "all/made": "removed",
      "all/made/empty": "removed",
      "all/moved": "restored",
      "all/moved-away": "removed",
      "all/new": "removed",
      "all/new/folder": "removed",
      "all/new/folder/file": "removed",
      "all/notes.ipynb": "restored",
      "all/redirected": "restored",
      "all/removed": "restored",
      "all/script": "restored",
      "all/streamed": "restored",
      "all/tree": "restored",
      "all/tree/deep": "restored",
      "all/tree/deep/leaf": "restored",
      "all/tree/link": "restored",
      "all/written": "restored",
    });
    assert.deepEqual(report.counts, { restored: 13, removed: 6, skipped: 0, failed: 0 });
    assert.deepEqual(readFileSync(at("all/binary")), bytes);
    assert.equal(text("all/notes.ipynb"), notebook);
    assert.deepEqual([mode("all/binary"), mode("all/script"), mode("all/tree/deep/leaf")], [0o640, 0o600, 0o444]);
    for (const name of ["written", "edited", "redirected", "streamed", "moved", "removed"]) {
      assert.equal(text(`all/${name}`), `${name} before\n`);
    }
    assert.equal(readlinkSync(at("all/tree/link")), "deep/leaf");
    assert.deepEqual(readdirSync(at("all")).toSorted(), [
      "binary",
      "edited",
      "moved",
      "notes.ipynb",
      "redirected",
      "removed",
      "script",
      "streamed",
      "tree",
      "written",
    ]);
  });

  test("undoes a turn and all later ones", async () => {
    await using _ = await workspaceNamed("many");
    writeFileSync(at("many/a"), "0");
    const first = await turn("many", [write("many/a", "1"), write("many/b", "1")]);
    const second = await turn("many", [write("many/a", "2"), write("many/c", "2")]);
    await rewind(second);
    assert.deepEqual([text("many/a"), text("many/b"), existsSync(at("many/c"))], ["1", "1", false]);
    const third = await turn("many", [write("many/a", "3"), exec("rm many/b")]);
    const report = await rewind(first);
    assert.deepEqual(outcomes(report), { "many/a": "restored", "many/b": "skipped", "many/c": "skipped" });
    assert.deepEqual([text("many/a"), existsSync(at("many/b")), existsSync(at("many/c"))], ["0", false, false]);
    await rewind(third);
    assert.deepEqual([text("many/a"), text("many/b")], ["1", "1"]);
  });

  // design: 003.30b
  test("can itself be undone with its own checkpoint", async () => {
    await using _ = await workspaceNamed("undo");
    writeFileSync(at("undo/a"), "before", { mode: 0o600 });
    const ended = await turn("undo", [write("undo/a", "after"), write("undo/b", "made")]);
    const { checkpointId } = await rewind(ended);
    assert.deepEqual([text("undo/a"), existsSync(at("undo/b"))], ["before", false]);
    await rewind({ ...ended, turnId: checkpointId ?? "" });
    assert.deepEqual([text("undo/a"), text("undo/b")], ["after", "made"]);
  });

  test("reports each file's outcome in a dry run and changes nothing", async () => {
    await using _ = await workspaceNamed("dry");
    writeFileSync(at("dry/a"), "before");
    const ended = await turn("dry", [write("dry/a", "after"), write("dry/b", "made")]);
    const dry = await rewind(ended, { dryRun: true });
    assert.deepEqual(outcomes(dry), { "dry/a": "restored", "dry/b": "removed" });
    assert.equal(dry.checkpointId, null);
    assert.deepEqual([text("dry/a"), text("dry/b")], ["after", "made"]);
    assert.deepEqual(outcomes(await rewind(ended)), outcomes(dry));
  });

  test("is rejected while a turn of the session runs, and for unknown or foreign turns", async () => {
    await using _ = await workspaceNamed("refused");
    const ended = await turn("refused", [write("refused/a", "1")]);
    const [request] = await fixture.plan([{ tool: "ls", class: "pure" }], { sessionKey: "refused" });
    assert.ok(request !== undefined);
    await assert.rejects(rewind(ended), failsWith("CONFLICT", /a turn of this session is still running/));
    assert.equal(text("refused/a"), "1");
    await fixture.finish(request.turnId);
    await assert.rejects(rewind({ ...ended, turnId: randomUUID() }), failsWith("NOT_FOUND", /no turn or checkpoint/));
    const other = await turn("refused-other", [write("refused/b", "1")]);
    await assert.rejects(rewind({ ...ended, turnId: other.turnId }), failsWith("NOT_FOUND", /no turn or checkpoint/));
    await rewind(ended);
    assert.deepEqual([existsSync(at("refused/a")), existsSync(at("refused/b"))], [false, true]);
  });

  test("is rejected while a background process of the session runs", async () => {
    await using _ = await workspaceNamed("background");
    const ended = await turn("background", [
      [
        "exec",
        "once",
        { command: "echo > background/a; until [ -e background/go ]; do sleep 0.02; done", background: true },
      ],
    ]);
    await assert.rejects(rewind(ended), failsWith("CONFLICT", /background process .* may change files/));
    writeFileSync(at("background/go"), "");
  });

  test("is rejected while a background process runs on a tool-runner that does not answer", async () => {
    await using local = new Cleanup();
    const runner = await fixture.runner("confirms", { rewindTimes: { confirmMs: 0 } });
    local.add(() => runner.close());
    const input = { path: "silent/a", content: "1" };
    const [request] = await fixture.plan([{ tool: "write", class: "idempotent", input }]);
    assert.ok(request !== undefined);
    assert.equal((await fixture.call(request)).state, "done");
    const key = randomUUID();
    const { grant = assert.fail("a call has a grant") } = request;
    const about = { id: "1@silent", runner: "silent#1", command: "echo > silent/a", notify: false };
    const keyHash = createHash("sha256").update(key).digest("hex");
    await runnerBus.request(store.processBegin, { ...about, grant, keyHash, startedAt: new Date().toISOString() });
    await fixture.finish(request.turnId);
    await assert.rejects(rewind(request), failsWith("CONFLICT", /background process 1@silent .* may change files/));
    assert.equal(text("silent/a"), "1");
    await runnerBus.request(store.processEnd, { id: about.id, key, text: "ended" });
    await rewind(request);
    assert.equal(existsSync(at("silent/a")), false);
  });

  test("returns the same report when repeated with its id", async () => {
    await using _ = await workspaceNamed("again");
    const ended = await turn("again", [write("again/a", "1")]);
    const opId = randomUUID();
    const [one, two] = await Promise.all([rewind(ended, { opId }), rewind(ended, { opId })]);
    assert.deepEqual(one, two);
    writeFileSync(at("again/a"), "made since");
    assert.deepEqual(await rewind(ended, { opId }), one);
    assert.equal(text("again/a"), "made since");
  });

  test("does not interleave with a concurrent rewind on another replica", async () => {
    await using local = await workspaceNamed("both");
    const second = await fixture.runner("both-2");
    local.add(() => second.close());
    const names = Array.from({ length: 12 }, (_, index) => `both/${index}`);
    const one = await turn(
      "both",
      names.map((name) => write(name, "1")),
    );
    const two = await turn(
      "both",
      names.map((name) => write(name, "2")),
    );
    await Promise.all([rewind(two), rewind(two), rewind(one)]);
    const states = names.map((name) => (existsSync(at(name)) ? text(name) : "none"));
    assert.equal(new Set(states).size, 1, states.join(" "));
  });
});

test("restores documents as new versions, and can undo that", async () => {
  await using _ = await workspaceNamed("documents");
  const read = async (path: string) => (await gateway.request(store.documentGet, { path })).document;
  const put = (content: string) =>
    gateway.request(store.documentPut, { opId: randomUUID(), path: "MEMORY.md", author: "owner", content });
  await put("from a person\n");
  const ended = await turn("documents", [
    write("MEMORY.md", "by the agent\n"),
    write("MEMORY.md", "by the agent, again\n"),
    write("memory/new.md", "noted\n"),
    write("documents/file", "a file next to them"),
  ]);
  const { checkpoints } = await gateway.request(store.checkpointList, { sessionId: ended.sessionId, limit: 10 });
  assert.deepEqual(
    checkpoints.map(({ checkpointId, files }) => [checkpointId, files]),
    [[ended.turnId, 3]],
  );
  const expected = { "MEMORY.md": "restored", "documents/file": "removed", "memory/new.md": "removed" };
  assert.deepEqual(outcomes(await rewind(ended, { dryRun: true })), expected);
  assert.equal((await read("MEMORY.md"))?.content, "by the agent, again\n");
  const report = await rewind(ended);
  assert.deepEqual(outcomes(report), expected);
  assert.deepEqual(
    [await read("MEMORY.md"), await read("memory/new.md")].map((each) => each?.content),
    ["from a person\n", undefined],
  );
  assert.equal((await read("MEMORY.md"))?.version, 4);
  await rewind({ ...ended, turnId: report.checkpointId ?? "" });
  assert.deepEqual(
    [await read("MEMORY.md"), await read("memory/new.md")].map((each) => [each?.content, each?.author]),
    [
      ["by the agent, again\n", "agent"],
      ["noted\n", "agent"],
    ],
    "restored text does not become trusted",
  );
});

describe("a rewind with obstacles", () => {
  test("writes through no link that was put in the way", async () => {
    await using _ = await workspaceNamed("links");
    const outside = join(workspace, "..", "links-outside");
    mkdirSync(outside);
    writeFileSync(join(outside, "in"), "theirs");
    mkdirSync(at("links/folder"));
    mkdirSync(at("links/other"));
    writeFileSync(at("links/other/in"), "other");
    for (const name of ["folder/in", "file", "near"]) writeFileSync(at(`links/${name}`), "before");
    mkdirSync(at("links/inner"));
    writeFileSync(at("links/inner/in"), "before");
    const ended = await turn(
      "links",
      ["folder/in", "file", "near", "inner/in"].map((name) => write(`links/${name}`, "after")),
    );
    renameSync(at("links/folder"), at("links/folder-away"));
    symlinkSync(outside, at("links/folder"));
    renameSync(at("links/inner"), at("links/inner-away"));
    symlinkSync("other", at("links/inner"));
    unlinkSync(at("links/file"));
    symlinkSync(join(outside, "in"), at("links/file"));
    unlinkSync(at("links/near"));
    symlinkSync("other/in", at("links/near"));
    const report = await rewind(ended);
    assert.deepEqual(outcomes(report), {
      "links/file": "restored",
      "links/folder/in": "failed",
      "links/inner/in": "failed",
      "links/near": "restored",
    });
    assert.equal(readFileSync(join(outside, "in"), "utf8"), "theirs");
    assert.equal(text("links/other/in"), "other");
    assert.equal(lstatSync(at("links/file")).isFile() && lstatSync(at("links/near")).isFile(), true);
    assert.deepEqual([text("links/file"), text("links/near")], ["before", "before"]);
  });

  // design: 002.21
  test("ignores paths outside the workspace without stopping the tool", async () => {
    await using _ = await workspaceNamed("out");
    const outside = join(workspace, "..", "out-outside");
    const ended = await turn("out", [exec("echo x > ../out-outside; echo y > out/in")]);
    assert.equal(readFileSync(outside, "utf8"), "x\n");
    assert.deepEqual(outcomes(await rewind(ended)), { "out/in": "removed" });
    assert.equal(existsSync(outside), true);
  });

  test("restores what a command replaced by files from outside the workspace, and its other changes", async () => {
    await using _ = await workspaceNamed("in");
    mkdirSync(at("in/from/deep"), { recursive: true });
    for (const name of ["plain", "from/deep/leaf", "removed"]) writeFileSync(at(`in/${name}`), "before");
    const ended = await turn("in", [
      exec(
        "mkdir -p /tmp/from/deep; echo after > /tmp/from/deep/leaf; cp /tmp/from/deep/leaf in/plain && cp -r /tmp/from in && ln -s /tmp in/link; rm in/removed",
      ),
    ]);
    assert.deepEqual([text("in/plain"), text("in/from/deep/leaf")], ["after\n", "after\n"]);
    const report = outcomes(await rewind(ended));
    assert.equal(report["in/link"], "removed");
    for (const name of ["in/plain", "in/from/deep/leaf", "in/removed"]) {
      assert.deepEqual([report[name], text(name)], ["restored", "before"], name);
    }
  });

  test("skips a file that was too large to capture, with the reason", async () => {
    const config: Config = await fixture.config("giant");
    const running = await start({ ...config, checkpoints: { ...config.checkpoints, maxFileBytes: 10 } });
    await using local = new Cleanup();
    local.add(() => running.close());
    mkdirSync(at("giant"));
    writeFileSync(at("giant/large"), "eleven bytes");
    writeFileSync(at("giant/small"), "small");
    const ended = await turn("giant", [
      write("giant/large", "after"),
      write("giant/small", "after and larger than before"),
    ]);
    const report = await rewind(ended);
    assert.deepEqual(outcomes(report), { "giant/large": "skipped", "giant/small": "restored" });
    assert.match(reasonFor(report, "giant/large"), /not captured: it has 12 bytes; the limit is 10/);
    assert.deepEqual([text("giant/large"), text("giant/small")], ["after", "small"]);
  });

  test("fails only the files whose captured content is missing or damaged", async () => {
    await using _ = await workspaceNamed("missing");
    for (const name of ["a", "b", "c"]) writeFileSync(at(`missing/${name}`), `${name} ${randomUUID()}`);
    const before = ["a", "b", "c"].map((name) => text(`missing/${name}`));
    const known = new Set(readdirSync(blobs));
    const ended = await turn(
      "missing",
      ["a", "b", "c"].map((name) => write(`missing/${name}`, "after")),
    );
    const kept = readdirSync(blobs).filter((name) => !known.has(name));
    assert.equal(kept.length, 3);
    const holding = (content: string | undefined) =>
      join(
        blobs,
        kept.find((name) => readFileSync(join(blobs, name), "utf8") === content) ?? assert.fail("not captured"),
      );
    const [first, second] = [holding(before[0]), holding(before[1])];
    unlinkSync(first);
    writeFileSync(second, "something else");
    const report = await rewind(ended);
    assert.deepEqual(outcomes(report), { "missing/a": "failed", "missing/b": "failed", "missing/c": "restored" });
    assert.match(reasonFor(report, "missing/a"), /missing/);
    assert.match(reasonFor(report, "missing/b"), /damaged/);
    assert.deepEqual([text("missing/a"), text("missing/b"), text("missing/c")], ["after", "after", before[2]]);
    assert.deepEqual(readdirSync(at("missing")).toSorted(), ["a", "b", "c"]);
  });

  test("keeps a new folder while it contains an unknown file", async () => {
    await using _ = await workspaceNamed("kept");
    const ended = await turn("kept", [write("kept/made/a", "1")]);
    writeFileSync(at("kept/made/theirs"), "theirs");
    const report = await rewind(ended);
    assert.deepEqual(outcomes(report), { "kept/made": "skipped", "kept/made/a": "removed" });
    assert.equal(text("kept/made/theirs"), "theirs");
  });
});

describe("capturing", () => {
  test("by two replicas at once stores the content from before the turn", async () => {
    await using local = await workspaceNamed("race");
    const second = await fixture.runner("race-2");
    local.add(() => second.close());
    for (let round = 0; round < 5; round++) {
      const path = `race/${round}`;
      writeFileSync(at(path), "before");
      const requests = await fixture.plan(
        Array.from({ length: 8 }, (_, index) => ({
          tool: "write",
          class: "idempotent" as const,
          input: { path, content: `${index}` },
        })),
        { sessionKey: "race" },
      );
      await Promise.all(requests.map((request) => fixture.call(request)));
      const { turnId, sessionId } = requests[0] ?? assert.fail();
      await fixture.finish(turnId);
      assert.deepEqual(outcomes(await rewind({ sessionId, turnId })), { [path]: "restored" });
      assert.equal(text(path), "before");
    }
  });

  test("belongs to the user's turn when a sub-agent changes the file", async () => {
    await using _ = await workspaceNamed("sub");
    writeFileSync(at("sub/a"), "before");
    const root = await turn("sub", [["ls", "pure", {}]]);
    const [request] = await fixture.plan(
      [{ tool: "write", class: "idempotent", input: { path: "sub/a", content: "by the child" } }],
      { sessionKey: "sub-child", rights: { rootTurnId: root.turnId } },
    );
    assert.ok(request !== undefined);
    await fixture.call({ ...request, rootTurnId: root.turnId });
    await fixture.finish(request.turnId);
    await rewind(root);
    assert.equal(text("sub/a"), "before");
  });

  test("follows a symbolic link to the file that a command changes", async () => {
    await using _ = await workspaceNamed("linked");
    writeFileSync(at("linked/target"), "before");
    symlinkSync("target", at("linked/name"));
    const ended = await turn("linked", [exec("echo after > linked/name")]);
    assert.equal(text("linked/target"), "after\n");
    assert.deepEqual(outcomes(await rewind(ended)), { "linked/target": "restored", "linked/name": "skipped" });
    assert.equal(text("linked/target"), "before");
    assert.equal(readlinkSync(at("linked/name")), "target");
  });

  test("is repeated for content that a sweep removed before its row was written", async () => {
    await using local = await workspaceNamed("swept");
    const kept = new ContentStore(await temporaryFolder(local));
    const opened = await openWorkspace(workspace);
    local.add(() => opened[Symbol.asyncDispose]());
    const rows = createCheckpointClient(runnerBus);
    const failures: unknown[] = [];
    const recorder = new CheckpointRecorder({
      workspace: opened,
      blobs: kept,
      rows: {
        ...rows,
        track: async (...named) => {
          assert.equal(await kept.sweep((sha256) => rows.unreferenced(sha256), -10_000), 1);
          return rows.track(...named);
        },
      },
      maxFileBytes: 1_000,
      onUntracked: (...untracked) => failures.push(untracked),
      onFailure: (_, error) => failures.push(error),
      faultPoint: () => undefined,
      patienceMs: 1_000,
    });
    const content = `before ${randomUUID()}`;
    writeFileSync(at("swept/a"), content);
    const [request] = await fixture.plan([{ tool: "ls", class: "pure", input: {} }], { sessionKey: "swept" });
    assert.ok(request !== undefined);
    const { turnId: rootTurnId, grant } = request;
    assert.ok(grant !== undefined);
    await recorder.forCall({ rootTurnId, grant }, AbortSignal.timeout(10_000)).track(["swept/a"]);
    await fixture.finish(request.turnId);
    assert.deepEqual(failures, []);
    assert.deepEqual(
      readdirSync(kept.folder).map((name) => readFileSync(join(kept.folder, name), "utf8")),
      [content],
    );
  });

  // design: 002.21
  test("that fails stops no tool: the file is changed, and a rewind skips it", async () => {
    const config: Config = await fixture.config("broken");
    const running = await start({ ...config, checkpoints: { ...config.checkpoints, folder: at("in-the-way/blobs") } });
    // The folder is removed while it runs: without a writable folder it would not start.
    rmSync(at("in-the-way"), { recursive: true });
    writeFileSync(at("in-the-way"), "a file where the folder should be");
    await using local = new Cleanup();
    local.add(() => running.close());
    mkdirSync(at("broken"));
    writeFileSync(at("broken/a"), "before");
    const ended = await turn("broken", [write("broken/a", "after")]);
    assert.equal(text("broken/a"), "after");
    const report = await rewind(ended);
    assert.deepEqual(outcomes(report), { "broken/a": "skipped" });
    assert.match(reasonFor(report, "broken/a"), /^it was not captured: /);
  });

  test("is off when the settings disable it", async () => {
    const config: Config = await fixture.config("off");
    const running = await start({ ...config, checkpoints: { ...config.checkpoints, enabled: false } });
    await using local = new Cleanup();
    local.add(() => running.close());
    const ended = await turn("off", [write("off/a", "after")]);
    assert.deepEqual((await rewind(ended)).files, []);
    assert.equal(text("off/a"), "after");
  });

  test("waits for a running rewind, so that neither undoes the other", async () => {
    await using _ = await workspaceNamed("waits");
    const ended = await turn("waits", [write("waits/a", "1")]);
    const other = await permit(ended, randomUUID());
    const begun = await runnerBus.request(store.rewindBegin, { rewind: other, runner: "other#1", ttlMs: 20_000 });
    assert.equal(begun.status, "granted");
    const [request] = await fixture.plan([
      { tool: "write", class: "idempotent", input: { path: "waits/a", content: "2" } },
    ]);
    assert.ok(request !== undefined);
    const answer = fixture.call(request);
    for (let times = 0; times < 20; times++) await fixture.core.request(toolCatalog, {});
    assert.equal(text("waits/a"), "1");
    await runnerBus.request(store.rewindUpdate, { rewind: other, fence: begun.fence, change: { report: null } });
    assert.equal((await answer).state, "done");
    assert.equal(text("waits/a"), "2");
    await fixture.finish(request.turnId);
    await rewind(request);
    assert.equal(text("waits/a"), "1");
  });
});

describe("killed (-9)", () => {
  test("between content and row: the repeated call captures the original file", async () => {
    mkdirSync(at("between"));
    writeFileSync(at("between/a"), "before");
    const [request] = await fixture.plan([
      { tool: "write", class: "idempotent", input: { path: "between/a", content: "after" } },
    ]);
    assert.ok(request !== undefined);
    const dying = await launch(fixture, "between", { FAULT: "checkpoint.before_row:kill" });
    const death = killed(dying);
    const unanswered = fixture.call(request, 1_000).catch(() => undefined);
    assert.equal(await death, "SIGKILL");
    await unanswered;
    assert.equal(text("between/a"), "before");
    const successor = await launch(fixture, "between");
    assert.equal((await fixture.call(request)).state, "done");
    assert.equal(text("between/a"), "after");
    await fixture.finish(request.turnId);
    await rewind(request);
    assert.equal(text("between/a"), "before");
    await kill(successor);
  });

  for (const successor of ["the same replica", "another replica"]) {
    test(`during a rewind: ${successor} completes it when repeated, and it can still be undone`, async () => {
      const name = `middle-${successor.split(" ")[0]}`;
      mkdirSync(at(name));
      const files = ["a", "b", "c"].map((file) => `${name}/${file}`);
      for (const file of files) writeFileSync(at(file), "before");
      const working = await launch(fixture, `${name}-1`);
      const ended = await turn(
        name,
        files.map((file) => write(file, "after")),
      );
      await kill(working);
      const opId = randomUUID();
      const dying = await launch(fixture, `${name}-1`, { FAULT: "rewind.after_file:kill" });
      const death = killed(dying);
      const answer = rewind(ended, { opId });
      assert.equal(await death, "SIGKILL");
      assert.deepEqual(files.map(text), ["before", "after", "after"]);
      const again = await launch(fixture, successor === "the same replica" ? `${name}-1` : `${name}-2`);
      const report = await answer;
      assert.equal(report.counts.failed, 0);
      assert.deepEqual(files.map(text), ["before", "before", "before"]);
      await rewind({ ...ended, turnId: report.checkpointId ?? "" });
      assert.deepEqual(files.map(text), ["after", "after", "after"]);
      await kill(again);
    });
  }
});

// design: 002.19
test("lists checkpoints newest first, with time, user text and number of files", async () => {
  await using _ = await workspaceNamed("listed");
  const first = await turn("listed", [write("listed/a", "1"), write("listed/b", "1")], "long ".repeat(30));
  await turn("listed", [["ls", "pure", {}]], "changes nothing");
  const { checkpointId } = await rewind(first);
  const { checkpoints } = await gateway.request(store.checkpointList, { sessionId: first.sessionId, limit: 10 });
  assert.deepEqual(
    checkpoints.map(({ at: _at, ...rest }) => rest),
    [
      { checkpointId, kind: "rewind", text: "", files: 2 },
      { checkpointId: first.turnId, kind: "turn", text: `${"long ".repeat(30).slice(0, 79)}…`, files: 2 },
    ],
  );
  assert.ok(checkpoints.every((each) => !Number.isNaN(Date.parse(each.at))));
});

test("removes unreferenced contents and restores referenced ones in a cleanup", async () => {
  await using _ = await workspaceNamed("tidy");
  writeFileSync(at("tidy/a"), "before");
  const ended = await turn("tidy", [write("tidy/a", "after")]);
  const kept = new ContentStore(blobs);
  async function* content() {
    yield Buffer.from(`nobody's ${randomUUID()}`);
  }
  const orphan = (await kept.put(content(), 1_000)) ?? assert.fail();
  writeFileSync(join(blobs, ".abandoned.tmp"), "half");
  const rows = createCheckpointClient(runnerBus);
  await collect({ rows, blobs: kept });
  assert.equal(await kept.has(orphan.sha256), true, "young contents stay: their row may not be written yet");
  // Renamed by a sweep that crashed before its check.
  const named =
    readdirSync(blobs).find((name) => readFileSync(join(blobs, name), "utf8") === "before") ?? assert.fail();
  renameSync(join(blobs, named), join(blobs, `${named}.trash`));
  assert.ok((await collect({ rows, blobs: kept }, -10_000)).contents >= 1);
  assert.deepEqual([await kept.has(orphan.sha256), existsSync(join(blobs, ".abandoned.tmp"))], [false, false]);
  await rewind(ended);
  assert.equal(text("tidy/a"), "before");
});
