// Switches of MCP servers, on a real PostgreSQL and a real bus.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { Bus } from "@parley/bus";
import { maxHiddenTools, mcpSwitched, store, WireError, type McpChange } from "@parley/contracts";
import { Cleanup, startStoreStack, type StoreStack } from "@parley/testing";

const cleanup = new Cleanup();
let stack: StoreStack;
let gateway: Bus;

before(async () => {
  stack = await startStoreStack(cleanup);
  gateway = await stack.bus("channel-gateway");
});
after(() => cleanup[Symbol.asyncDispose]());

const change = (server: string, wanted: McpChange, opId: string = randomUUID()) =>
  gateway.request(store.mcpSwitch, { opId, server, change: wanted, by: "Ada (irc 7)" });

async function kept(server: string) {
  const { switches } = await gateway.request(store.mcpSwitches, {});
  return switches.find((each) => each.server === server);
}

test("a server without a switch is not listed", async () => {
  assert.equal(await kept("untouched"), undefined);
});

test("a server stays off until it is switched on, and the person is recorded", async () => {
  assert.equal((await change("files", { do: "off" })).outcome, "done");
  const off = await kept("files");
  assert.deepEqual(
    { on: off?.on, by: off?.by, hidden: off?.hidden, restarts: off?.restarts },
    { on: false, by: "Ada (irc 7)", hidden: [], restarts: 0 },
  );
  assert.equal((await change("files", { do: "off" })).outcome, "same");
  assert.equal((await change("files", { do: "on" })).outcome, "done");
  assert.equal((await kept("files"))?.on, true);
  assert.equal((await change("files", { do: "on" })).outcome, "same");
});

test("a repeated request after a newer one changes nothing and returns its first reply", async () => {
  const opId = randomUUID();
  await change("again", { do: "off" }, opId);
  await change("again", { do: "on" });
  const replayed = await change("again", { do: "off" }, opId);
  assert.deepEqual({ outcome: replayed.outcome, on: replayed.switch.on }, { outcome: "done", on: false });
  assert.equal((await kept("again"))?.on, true);
});

test("a restart counts once per request, and not while the server is off", async () => {
  const opId = randomUUID();
  await Promise.all([change("tracker", { do: "restart" }, opId), change("tracker", { do: "restart" }, opId)]);
  assert.equal((await kept("tracker"))?.restarts, 1);
  await change("tracker", { do: "restart" });
  assert.equal((await kept("tracker"))?.restarts, 2);
  await change("tracker", { do: "off" });
  assert.equal((await change("tracker", { do: "restart" })).outcome, "off");
  assert.equal((await kept("tracker"))?.restarts, 2);
});

test("tools are hidden and shown separately, also concurrently, and survive server switches", async () => {
  const tools = ["write", "delete", "move"];
  await Promise.all(tools.map((tool) => change("disk", { do: "hide", tool })));
  assert.deepEqual((await kept("disk"))?.hidden, ["delete", "move", "write"]);
  assert.equal((await change("disk", { do: "hide", tool: "move" })).outcome, "same");
  await change("disk", { do: "off" });
  await change("disk", { do: "on" });
  await change("disk", { do: "show", tool: "move" });
  assert.deepEqual((await kept("disk"))?.hidden, ["delete", "write"]);
  assert.equal((await change("disk", { do: "show", tool: "move" })).outcome, "same");
});

test("refuses to hide more tools than the limit", async () => {
  for (let n = 0; n < maxHiddenTools; n++) await change("huge", { do: "hide", tool: `tool-${n}` });
  await assert.rejects(change("huge", { do: "hide", tool: "one more" }), (error) => WireError.is(error, "TOO_LARGE"));
  assert.equal((await kept("huge"))?.hidden.length, maxHiddenTools);
});

test("tool-runners are notified of a change", async () => {
  const runner = await stack.bus("tool-runner");
  const told = Promise.withResolvers<string>();
  runner.subscribe(mcpSwitched, {}, ({ server }) => (server === "told" ? told.resolve(server) : undefined));
  await runner.flush();
  await change("told", { do: "off" });
  assert.equal(await told.promise, "told");
});
