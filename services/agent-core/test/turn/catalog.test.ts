// agent-core's tool catalog, with the test as the tool-runner on a real bus.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createLogger } from "@parley/chassis";
import { toolCatalog, type ToolDescriptor } from "@parley/contracts";
import { Cleanup, openTestBus, startTestNats } from "@parley/testing";
import { ToolCatalog } from "../../src/tools/catalog.ts";

const log = createLogger({ service: "test", replica: "test", level: "silent" });

function tool(name: string): ToolDescriptor {
  return {
    name,
    aliases: [],
    summary: name,
    description: name,
    inputSchema: { type: "object" },
    class: "pure",
    readOnly: true,
    risk: "low",
    effects: [],
    resource: { kind: "none" },
    timeoutMs: 1_000,
  };
}

test("includes changes that happen during a request in the next catalog", async () => {
  await using cleanup = new Cleanup();
  const nats = await startTestNats(cleanup);
  const [core, runner] = await Promise.all([
    openTestBus(nats, "agent-core", cleanup),
    openTestBus(nats, "tool-runner", cleanup),
  ]);
  const catalog = new ToolCatalog(core, log);
  const answers = [["before"], ["after"]];
  const asked = Promise.withResolvers<undefined>();
  const changed = Promise.withResolvers<undefined>();
  runner.serve(toolCatalog, async () => {
    const tools = (answers.shift() ?? []).map(tool);
    asked.resolve(undefined);
    // The change is announced during the first request.
    await changed.promise;
    return { tools, isolation: "none", contained: false };
  });
  await runner.flush();
  const first = catalog.refresh();
  await asked.promise;
  const second = catalog.refresh();
  changed.resolve(undefined);
  await Promise.all([first, second]);
  assert.deepEqual(
    catalog.known().tools.map(({ name }) => name),
    ["after"],
  );
  assert.deepEqual(answers, []);
});

/** A tool-runner whose MCP server `slow` is starting until `up` is called. */
async function runnerWithServer(cleanup: Cleanup) {
  const nats = await startTestNats(cleanup);
  const [core, runner] = await Promise.all([
    openTestBus(nats, "agent-core", cleanup),
    openTestBus(nats, "tool-runner", cleanup),
  ]);
  let state: "starting" | "ready" = "starting";
  const asked = Promise.withResolvers<undefined>();
  runner.serve(toolCatalog, async () => {
    asked.resolve(undefined);
    const isUp = state === "ready";
    const mcp = [{ server: "slow", state, tools: isUp ? 1 : 0, problem: null }];
    return {
      tools: (isUp ? ["mcp__slow__echo", "read"] : ["read"]).map(tool),
      isolation: "none",
      contained: false,
      mcp,
    };
  });
  await runner.flush();
  const catalog = new ToolCatalog(core, log);
  const names = async () => (await catalog.tools()).tools.map(({ name }) => name);
  return { catalog, names, asked: asked.promise, up: () => (state = "ready") };
}

test("includes the tools of a server that starts in time in the first turn", async () => {
  await using cleanup = new Cleanup();
  const { catalog, names, asked, up } = await runnerWithServer(cleanup);
  const first = names();
  await asked;
  up();
  // Like a `tool.changed` hint.
  await catalog.refresh();
  assert.deepEqual(await first, ["mcp__slow__echo", "read"]);
});

test("waits once only when a server hangs and returns the other tools", async () => {
  await using cleanup = new Cleanup();
  const { catalog, names, up } = await runnerWithServer(cleanup);
  assert.deepEqual(await names(), ["read"]);
  // A later turn that waits has its catalog only after a timer, so after this one.
  const orWaits = async () => Promise.race([names(), setImmediate("it waits")]);
  assert.deepEqual(await orWaits(), ["read"]);
  await catalog.refresh();
  assert.deepEqual(await orWaits(), ["read"]);
  up();
  await catalog.refresh();
  assert.deepEqual(await names(), ["mcp__slow__echo", "read"]);
});
