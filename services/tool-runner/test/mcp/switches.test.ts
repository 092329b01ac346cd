// Switching MCP servers while two tool-runners run, one of them a separate process that is killed, with a server from npm
// over stdio. The store is real; in one fixture it publishes no hints.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { after, before, describe, test } from "node:test";
import type { Bus } from "@parley/bus";
import { healthReports, mcpStatus, store, toolCatalog, type McpChange } from "@parley/contracts";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { running } from "../support/commands.ts";
import { kill, launch } from "../support/launch.ts";
import { openRunnerFixture, type RunnerFixture } from "../support/runner-fixture.ts";
import { everything } from "./programs.ts";

const modern = fileURLToPath(new URL("servers/modern.ts", import.meta.url));
const patience = { firstMs: 20, maxMs: 50, breakAfter: 3, breakMs: 600_000, aliveMs: 1_000 };

/** A fixture with three servers: one from npm, a test server, and one whose program does not exist yet. */
async function open(cleanup: Cleanup, storeEnv: Record<string, string> = {}) {
  const fixture = await openRunnerFixture(cleanup, { storeEnv });
  const gateway = await fixture.stack.bus("channel-gateway");
  const folder = await temporaryFolder(cleanup);
  // A unique argument identifies the process on this machine.
  const mark = randomUUID();
  const late = join(folder, "late");
  const settings = join(folder, "parley.toml");
  const server = (name: string, command: string, args: string[]) =>
    `[mcp.servers.${name}]\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\n`;
  await writeFile(
    settings,
    [
      server("everything", process.execPath, [everything, "stdio", mark]),
      server("modern", process.execPath, ["--conditions=@parley/source", modern]),
      server("late", late, []),
    ].join("\n"),
  );
  await mkdir(dirname((await fixture.config("x")).workspace), { recursive: true });
  const env = { PARLEY_CONFIG: settings, PATH: process.env["PATH"] ?? "" };
  const programs = () => running(`${process.execPath} ${everything} stdio ${mark}`).length;
  return { fixture, gateway, env, late, programs };
}

const change = (gateway: Bus, server: string, wanted: McpChange) =>
  gateway.request(store.mcpSwitch, { opId: randomUUID(), server, change: wanted, by: "test" });

/** Waits for asynchronous actions of processes and replicas. */
async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await holds())) await delay(20);
}

describe("two tool-runners", () => {
  const cleanup = new Cleanup();
  let fixture: RunnerFixture;
  let gateway: Bus;
  let env: Record<string, string>;
  let late: string;
  let programs: () => number;
  let second: Awaited<ReturnType<typeof launch>>;

  before(async () => {
    ({ fixture, gateway, env, late, programs } = await open(cleanup));
    await fixture.runner("tool-runner-1", { mcpTimes: patience }, env);
    second = await launch(fixture, "tool-runner-2", env);
    await everywhere(/everything: ready/);
  });
  after(() => cleanup[Symbol.asyncDispose]());

  /** The status of the servers on each replica. */
  async function said(): Promise<string[]> {
    const reports = await gateway.gather(healthReports["tool-runner"], {}, 200);
    return reports.map(({ details }) => String(details["mcp"]));
  }
  const everywhere = (pattern: RegExp, replicas = 2) =>
    until(async () => {
      const all = await said();
      return all.length === replicas && all.every((each) => pattern.test(each));
    });
  const names = async () => (await fixture.core.request(toolCatalog, {})).tools.map(({ name }) => name);

  async function call(tool: string, input: unknown = {}) {
    const [request] = await fixture.plan([{ tool, class: "once", input }]);
    assert.ok(request !== undefined);
    const { state, result } = await fixture.call(request);
    return { state, content: result.content };
  }

  test("a server that is switched off has no processes and no tools until switched on", async () => {
    assert.equal(programs(), 2);
    await change(gateway, "everything", { do: "off" });
    await until(() => programs() === 0);
    await everywhere(/everything: off, 0 tools(;|$)/);
    assert.deepEqual(
      (await names()).filter((name) => name.startsWith("mcp__everything__")),
      [],
    );
    const { state, content } = await call("mcp__everything__echo", { message: "x" });
    assert.equal(state, "failed");
    assert.match(content, /everything is switched off; nothing was called.*\/mcp on everything/);
    assert.doesNotMatch((await call("mcp_resources")).content, /everything/);
    await change(gateway, "everything", { do: "on" });
    await everywhere(/everything: ready/);
    assert.equal(programs(), 2);
    assert.match((await call("mcp__everything__echo", { message: "back" })).content, /Echo: back/);
  });

  test("a restarted tool-runner applies switches and starts no server that is off", async () => {
    await kill(second);
    await change(gateway, "everything", { do: "off" });
    await change(gateway, "modern", { do: "hide", tool: "add" });
    await until(() => programs() === 0);
    let most = 0;
    const watching = setInterval(() => (most = Math.max(most, programs())), 5);
    second = await launch(fixture, "tool-runner-2", env);
    await everywhere(/everything: off, 0 tools.*modern: ready/);
    clearInterval(watching);
    assert.equal(most, 0);
    await until(async () => {
      const counts = (await said()).map((each) => /modern: ready, (\d+) tools/.exec(each)?.[1]);
      return counts.length === 2 && counts[0] === counts[1];
    });
    await change(gateway, "everything", { do: "on" });
    await change(gateway, "modern", { do: "show", tool: "add" });
    await everywhere(/everything: ready/);
  });

  test("a hidden tool is not listed and cannot be called; the others can", async () => {
    await change(gateway, "everything", { do: "hide", tool: "echo" });
    await until(async () => !(await names()).includes("mcp__everything__echo"));
    await until(async () =>
      /has disabled the tool/.test((await call("mcp__everything__echo", { message: "x" })).content),
    );
    assert.match((await call("mcp__everything__get-sum", { a: 1, b: 2 })).content, /is 3/);
    assert.equal(programs(), 2);
    const { tools } = await gateway.request(mcpStatus, { server: "everything" });
    assert.deepEqual(
      tools.filter(({ hidden }) => hidden),
      [{ tool: "echo", name: "mcp__everything__echo", summary: "Echoes back the input string", hidden: true }],
    );
    await change(gateway, "everything", { do: "show", tool: "echo" });
    await until(async () => (await names()).includes("mcp__everything__echo"));
  });

  test("switching a server off fails its running call with an unknown outcome", async () => {
    const called = call("mcp__everything__trigger-long-running-operation", { duration: 60, steps: 60 });
    await until(async () => (await runningCalls()) > 0);
    await change(gateway, "everything", { do: "off" });
    const { state, content } = await called;
    assert.equal(state, "failed");
    assert.match(
      content,
      /it was switched off\. Whether the call took effect is unknown; check before you repeat it\.$/m,
    );
    await change(gateway, "everything", { do: "on" });
    await everywhere(/everything: ready/);
  });

  async function runningCalls(): Promise<number> {
    const reports = await gateway.gather(healthReports["tool-runner"], {}, 100);
    return reports.reduce((sum, { details }) => sum + Number(details["running"]), 0);
  }

  test("a restarted server is a new process, and its tools stay listed meanwhile", async () => {
    const process = async () => /process (\d+)/.exec((await call("mcp__modern__era")).content)?.[1];
    const listed = await names();
    const seen = new Set<string | undefined>();
    for (let n = 0; n < 4; n++) seen.add(await process());
    await change(gateway, "modern", { do: "restart" });
    await until(async () => !seen.has(await process()));
    assert.deepEqual(await names(), listed);
  });

  test("a person's restart ends the pause of a server that kept failing", async () => {
    const one = async () => (await said()).some((each) => /late: broken/.test(each));
    await until(one);
    await writeFile(late, `#!/bin/sh\nexec ${process.execPath} --conditions=@parley/source ${modern}\n`);
    await chmod(late, 0o755);
    await change(gateway, "late", { do: "restart" });
    await everywhere(/late: ready/);
  });
});

test("a tool-runner applies a change without a hint", async () => {
  await using cleanup = new Cleanup();
  const { fixture, gateway, env, programs } = await open(cleanup, { FAULT_DROP_HINTS: "1" });
  await fixture.runner("tool-runner-1", { mcpTimes: patience }, env);
  await until(() => programs() === 1);
  await change(gateway, "everything", { do: "off" });
  await until(() => programs() === 0);
  await change(gateway, "everything", { do: "on" });
  await until(() => programs() === 1);
});

test("servers start only after an unavailable store has returned the switches", async () => {
  await using cleanup = new Cleanup();
  const { fixture, gateway, env, programs } = await open(cleanup);
  await change(gateway, "modern", { do: "off" });
  await fixture.stack.store.close();
  await fixture.runner("tool-runner-1", { mcpTimes: patience }, env);
  const { servers } = await gateway.request(mcpStatus, {});
  assert.deepEqual(
    servers.map(({ server, state }) => `${server} ${state}`),
    ["everything starting", "late starting", "modern starting"],
  );
  assert.equal(programs(), 0);
  await fixture.stack.startStore();
  await until(async () => {
    const now = await gateway.request(mcpStatus, {});
    return now.servers.every(
      ({ server, state }) => state === { everything: "ready", modern: "off" }[server] || server === "late",
    );
  });
});
