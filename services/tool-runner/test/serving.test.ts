// Calls over a real bus, settled in a real store: no `once` call starts twice, and every call ends.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  callToken,
  healthReports,
  toolAlive,
  toolCancel,
  toolCatalog,
  WireError,
  type ToolCallRequest,
} from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { z } from "zod";
import { defineTool, success, type Tool } from "../src/tool/tool.ts";
import { openRunnerFixture, type RunnerFixture } from "./support/runner-fixture.ts";
import { pollUntil } from "@parley/testing/until";

const cleanup = new Cleanup();
let fixture: RunnerFixture;

before(async () => {
  fixture = await openRunnerFixture(cleanup);
});
after(() => cleanup[Symbol.asyncDispose]());

const failsWith = (code: string) => (error: unknown) => WireError.is(error) && error.code === code;

/** A tool that blocks until the test opens it, and counts its runs. */
function gated(name: string, toolClass: "pure" | "idempotent" | "once") {
  const runs: string[] = [];
  const opened = Promise.withResolvers<void>();
  let begun = Promise.withResolvers<void>();
  const tool: Tool = defineTool({
    name,
    summary: "For tests.",
    description: "For tests.",
    args: z.strictObject({}),
    class: toolClass,
    readOnly: false,
    risk: "none",
    effects: [],
    timeoutMs: 20_000,
    run: async (_, context) => {
      runs.push(context.idempotencyKey);
      begun.resolve();
      const aborted = new Promise<void>((resolve) => {
        context.signal.addEventListener("abort", () => resolve(), { once: true });
      });
      await Promise.race([opened.promise, aborted]);
      return success(`run ${runs.length}`);
    },
  });
  return {
    tool,
    runs,
    open: () => opened.resolve(),
    /** Resolves at the next start of a run. */
    started: async () => {
      await begun.promise;
      begun = Promise.withResolvers();
    },
  };
}

describe("one call", () => {
  test("is settled in the store with the returned result", async () => {
    await using local = new Cleanup();
    const runner = await fixture.runner("settles");
    local.add(() => runner.close());
    const [write, read, failing] = await fixture.plan([
      { tool: "write", class: "idempotent", input: { path: "a.txt", content: "one\n" } },
      { tool: "read", class: "pure", input: { path: "a.txt" } },
      { tool: "read", class: "pure", input: { path: "../a.txt" } },
    ]);
    assert.ok(write !== undefined && read !== undefined && failing !== undefined);
    for (const [request, state] of [
      [write, "done"],
      [read, "done"],
      [failing, "failed"],
    ] as const) {
      const answer = await fixture.call(request);
      assert.equal(answer.state, state);
      assert.equal(answer.result.id, request.callId);
      const step = await fixture.step(request);
      assert.equal(step.state, state);
      assert.deepEqual(step.result, answer.result);
    }
    assert.match((await fixture.step(read)).result?.content ?? "", /1\tone/);
    assert.match((await fixture.step(write)).runner ?? "", /^settles#/);
  });

  // design: 004.8
  test("returns a helpful error for an unknown tool or wrong arguments", async () => {
    await using local = new Cleanup();
    const runner = await fixture.runner("helps");
    local.add(() => runner.close());
    const requests = await fixture.plan([
      { tool: "reed", class: "pure" },
      { tool: "read", class: "pure", input: { path: "a", offset: 0, lines: 3 } },
      { tool: "read", class: "pure", input: {} },
    ]);
    const [unknown, wrong, missing] = await Promise.all(requests.map((request) => fixture.call(request)));
    assert.match(
      unknown?.result.content ?? "",
      /Unknown tool "reed".* apply_patch, attach, edit, exec, glob, grep, ls, notebook_edit, process, read, save_attachment, web_fetch, write/,
    );
    assert.match(wrong?.result.content ?? "", /offset: [^\n]+\n.*lines/s);
    assert.match(missing?.result.content ?? "", /path: /);
    const [broken] = await fixture.plan([{ tool: "read", class: "pure" }]);
    assert.ok(broken !== undefined);
    assert.match((await fixture.call({ ...broken, input: '{"path": "a' })).result.content, /not valid JSON/);
  });

  test("sends heartbeats immediately and at intervals until its end", async () => {
    await using local = new Cleanup();
    const gate = gated("beats", "once");
    const runner = await fixture.runner("beats", { tools: [gate.tool], times: { aliveMs: 30 } });
    local.add(() => runner.close());
    const [request] = await fixture.plan([{ tool: "beats", class: "once" }]);
    assert.ok(request !== undefined);
    const enough = Promise.withResolvers<void>();
    let beats = 0;
    const heard = fixture.core.subscribe(
      toolAlive,
      { call: callToken(request.turnId, request.n) },
      ({ runner: name }) => {
        assert.equal(name, "beats");
        beats += 1;
        if (beats === 5) enough.resolve();
      },
    );
    const answer = fixture.call(request);
    await enough.promise;
    gate.open();
    assert.equal((await answer).state, "done");
    heard.close();
  });

  test("is stopped and fails at its deadline", async () => {
    await using local = new Cleanup();
    const runner = await fixture.runner("deadline");
    local.add(() => runner.close());
    const [request] = await fixture.plan([
      { tool: "exec", class: "once", input: { command: "echo begun; sleep 3006" }, timeoutMs: 2_000 },
    ]);
    assert.ok(request !== undefined);
    const answer = await fixture.call(request);
    assert.equal(answer.state, "failed");
    assert.match(answer.result.content, /did not finish within/);
    assert.match(answer.result.content, /begun/);
  });
});

describe("a repeated call", () => {
  test("joins the run on the same replica", async () => {
    await using local = new Cleanup();
    const gate = gated("joined", "once");
    const runner = await fixture.runner("joined", { tools: [gate.tool] });
    local.add(() => runner.close());
    const [request] = await fixture.plan([{ tool: "joined", class: "once" }]);
    assert.ok(request !== undefined);
    const answers = Array.from({ length: 10 }, () => fixture.call(request));
    await gate.started();
    gate.open();
    for (const answer of await Promise.all(answers)) assert.equal(answer.result.content, "run 1");
    assert.equal((await fixture.call(request)).result.content, "run 1", "also after it has been settled");
    assert.equal(gate.runs.length, 1);
  });

  test("of class once runs on one of three replicas; the others wait for its settlement", async () => {
    await using local = new Cleanup();
    const gate = gated("shared", "once");
    for (const name of ["shared-1", "shared-2", "shared-3"]) {
      const runner = await fixture.runner(name, { tools: [gate.tool], times: { pollMs: 20 } });
      local.add(() => runner.close());
    }
    const [request] = await fixture.plan([{ tool: "shared", class: "once" }]);
    assert.ok(request !== undefined);
    const answers = Array.from({ length: 30 }, () => fixture.call(request));
    await gate.started();
    const early = await Promise.race([Promise.any(answers), fixture.core.flush().then(() => "waiting")]);
    assert.equal(early, "waiting");
    gate.open();
    for (const answer of await Promise.all(answers)) {
      assert.deepEqual([answer.state, answer.result.content], ["done", "run 1"]);
    }
    assert.equal(gate.runs.length, 1);
  });

  test("of class idempotent has one result and one key on all replicas", async () => {
    await using local = new Cleanup();
    const gate = gated("again", "idempotent");
    for (const name of ["again-1", "again-2"]) {
      const runner = await fixture.runner(name, { tools: [gate.tool], times: { pollMs: 20, patienceMs: 60 } });
      local.add(() => runner.close());
    }
    const [request] = await fixture.plan([{ tool: "again", class: "idempotent" }]);
    assert.ok(request !== undefined);
    const answers = Array.from({ length: 10 }, () => fixture.call(request));
    await gate.started();
    gate.open();
    const contents = new Set((await Promise.all(answers)).map((answer) => answer.result.content));
    assert.equal(contents.size, 1);
    assert.deepEqual([...new Set(gate.runs)], [`${request.turnId}:${request.n}`]);
  });
});

describe("epochs", () => {
  test("rejects a stale epoch, whether the new one was announced or came with a call", async () => {
    await using local = new Cleanup();
    const runner = await fixture.runner("epochs");
    local.add(() => runner.close());
    const [byEvent] = await fixture.plan([{ tool: "ls", class: "pure" }]);
    assert.ok(byEvent !== undefined);
    await fixture.takeOver(true);
    await assert.rejects(fixture.call(byEvent), failsWith("STALE_EPOCH"));
    await fixture.takeOver(false);
    const [current] = await fixture.plan([{ tool: "ls", class: "pure" }]);
    assert.ok(current !== undefined);
    assert.equal((await fixture.call(current)).state, "done");
    await assert.rejects(fixture.call({ ...current, epoch: current.epoch - 1 }), failsWith("STALE_EPOCH"));
  });

  test("settles a result under the new epoch when it arrives after a takeover", async () => {
    await using local = new Cleanup();
    const gate = gated("late", "once");
    const runner = await fixture.runner("late", { tools: [gate.tool] });
    local.add(() => runner.close());
    const [request] = await fixture.plan([{ tool: "late", class: "once" }]);
    assert.ok(request !== undefined);
    const first = fixture.call(request);
    await gate.started();
    // The new leader is not announced: the runner learns of it from the repeated call.
    const epoch = await fixture.takeOver(false);
    gate.open();
    const second = fixture.call({ ...request, epoch });
    assert.deepEqual(await second, await first);
    assert.equal((await fixture.step(request)).result?.content, "run 1");
    assert.equal(gate.runs.length, 1);
  });
});

describe("cancelling", () => {
  const cancel = (request: ToolCallRequest, epoch = fixture.epoch) =>
    fixture.core.publish(
      toolCancel,
      { epoch, turnId: request.turnId, n: request.n },
      { call: callToken(request.turnId, request.n) },
    );

  test("kills the command and settles the step as cancelled", async () => {
    await using local = new Cleanup();
    const runner = await fixture.runner("cancels");
    local.add(() => runner.close());
    const [request] = await fixture.plan([
      { tool: "exec", class: "once", input: { command: "echo $$ > pid; sleep 3007 & sleep 3008" } },
    ]);
    assert.ok(request !== undefined);
    const answer = fixture.call(request);
    const file = join((await fixture.config("x")).workspace, "pid");
    await pollUntil(() => existsSync(file) && readFileSync(file, "utf8") !== "");
    cancel(request);
    // Without its output, the call would have been abandoned while the command ran on.
    assert.match((await answer).result.content, /^Cancelled while it ran\. Its output:\n/);
    assert.equal((await fixture.step(request)).state, "cancelled");
    await pollUntil(() => !existsSync(`/proc/${readFileSync(file, "utf8").trim()}`));
  });

  test("removes a waiting call, and stops a call that has not arrived yet on arrival", async () => {
    await using local = new Cleanup();
    const gate = gated("slow", "once");
    const config = await fixture.config("one-place");
    const { start } = await import("../src/service.ts");
    const runner = await start({ ...config, maxConcurrentCalls: 1 }, { tools: [gate.tool] });
    local.add(() => runner.close());
    const [first, second, third] = await fixture.plan([
      { tool: "slow", class: "once" },
      { tool: "slow", class: "once" },
      { tool: "slow", class: "once" },
    ]);
    assert.ok(first !== undefined && second !== undefined && third !== undefined);
    const running = fixture.call(first);
    await gate.started();
    const waiting = fixture.call(second);
    cancel(second);
    cancel(third);
    assert.equal((await waiting).state, "cancelled");
    assert.equal((await fixture.call(third)).state, "cancelled");
    gate.open();
    assert.equal((await running).state, "done");
    assert.equal(gate.runs.length, 1);
  });

  test("is ignored when sent by a former leader", async () => {
    await using local = new Cleanup();
    const gate = gated("kept", "once");
    const runner = await fixture.runner("kept", { tools: [gate.tool] });
    local.add(() => runner.close());
    const [request] = await fixture.plan([{ tool: "kept", class: "once" }]);
    assert.ok(request !== undefined);
    const answer = fixture.call(request);
    await gate.started();
    cancel(request, fixture.epoch - 1);
    await fixture.core.flush();
    gate.open();
    assert.equal((await answer).state, "done");
  });
});

describe("load and drain", () => {
  test("limits concurrent calls to the setting and runs the others in order", async () => {
    await using local = new Cleanup();
    let running = 0;
    let most = 0;
    const order: string[] = [];
    const tool = defineTool({
      name: "counted",
      summary: "For tests.",
      description: "For tests.",
      args: z.strictObject({ i: z.string() }),
      class: "pure",
      readOnly: true,
      risk: "none",
      effects: [],
      timeoutMs: 5_000,
      run: async ({ i }) => {
        running += 1;
        most = Math.max(most, running);
        order.push(i);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
        return success(i);
      },
    });
    const { start } = await import("../src/service.ts");
    const runner = await start({ ...(await fixture.config("load")), maxConcurrentCalls: 3 }, { tools: [tool] });
    local.add(() => runner.close());
    const names = Array.from({ length: 24 }, (_, i) => String(i).padStart(2, "0"));
    const requests = await fixture.plan(names.map((i) => ({ tool: "counted", class: "pure" as const, input: { i } })));
    const answers = await Promise.all(requests.map((request) => fixture.call(request)));
    assert.deepEqual(
      answers.map((answer) => answer.result.content),
      names,
    );
    assert.ok(most <= 3, `${most} at once`);
    assert.deepEqual(order, names);
  });

  test("finishes running calls on shutdown and hands waiting ones to another replica", async () => {
    await using local = new Cleanup();
    const gate = gated("moves", "once");
    const { start } = await import("../src/service.ts");
    const leaving = await start(
      { ...(await fixture.config("leaving")), maxConcurrentCalls: 1 },
      { tools: [gate.tool] },
    );
    const [first, second] = await fixture.plan([
      { tool: "moves", class: "once" },
      { tool: "moves", class: "once" },
    ]);
    assert.ok(first !== undefined && second !== undefined);
    const running = fixture.call(first);
    await gate.started();
    const waiting = fixture.call(second);
    await fixture.core.flush();
    const staying = await fixture.runner("staying", { tools: [gate.tool] });
    local.add(() => staying.close());
    const closed = leaving.close();
    await gate.started();
    gate.open();
    await closed;
    assert.match((await fixture.step(first)).runner ?? "", /^leaving#/);
    assert.match((await fixture.step(second)).runner ?? "", /^staying#/);
    assert.deepEqual([(await running).state, (await waiting).state], ["done", "done"]);
  });

  test("interrupts calls that outlast the drain, and reports it to the model", async () => {
    const runner = await fixture.runner("abrupt", {}, { PARLEY_DRAIN_MS: "600" });
    const [request] = await fixture.plan([
      { tool: "exec", class: "once", input: { command: "echo x > begun; sleep 3009" } },
    ]);
    assert.ok(request !== undefined);
    const answer = fixture.call(request);
    const workspace = (await fixture.config("x")).workspace;
    await pollUntil(() => existsSync(join(workspace, "begun")));
    await runner.close();
    assert.equal((await answer).state, "cancelled");
    assert.match((await fixture.step(request)).result?.content ?? "", /Interrupted: the tool-runner was shut down/);
  });
});

test("reports tools and isolation in the catalog and the health report", async () => {
  await using local = new Cleanup();
  const runner = await fixture.runner("shown");
  local.add(() => runner.close());
  const catalog = await fixture.core.request(toolCatalog, {});
  assert.deepEqual(
    catalog.tools.map(({ name, class: toolClass, readOnly }) => [name, toolClass, readOnly]),
    [
      ["apply_patch", "once", false],
      ["attach", "idempotent", true],
      ["edit", "once", false],
      ["exec", "once", false],
      ["glob", "pure", true],
      ["grep", "pure", true],
      ["ls", "pure", true],
      ["notebook_edit", "once", false],
      ["process", "once", false],
      ["read", "pure", true],
      ["save_attachment", "idempotent", false],
      ["web_fetch", "pure", true],
      ["write", "idempotent", false],
    ],
  );
  for (const tool of catalog.tools) {
    assert.equal(tool.inputSchema["type"], "object");
    assert.equal(tool.inputSchema["additionalProperties"], false);
  }
  assert.match(catalog.isolation, /^none/);
  const operator = await fixture.stack.bus("operator");
  const report = await pollUntil(async () => (await operator.gather(healthReports["tool-runner"], {}, 300))[0]);
  assert.equal(report.replica, "shown");
  assert.match(String(report.details["isolation"]), /^none/);
  assert.equal(report.details["running"], 0);
});

test("fits a result into the caller's limit of JSON bytes", async () => {
  await using local = new Cleanup();
  const runner = await fixture.runner("fits");
  local.add(() => runner.close());
  const [request] = await fixture.plan([
    { tool: "exec", class: "once", input: { command: "yes '\"\\\\\"' | head -c 20000" }, maxResultBytes: 5_000 },
  ]);
  assert.ok(request !== undefined);
  const { result } = await fixture.call(request);
  assert.ok(Buffer.byteLength(JSON.stringify(result)) <= 5_000);
  assert.match(result.content, /Showing \d+ of \d+ characters from exec; the others are missing here/);
  assert.match(result.content, /exit code 0/);
});
