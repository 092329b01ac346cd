// Two gateway processes and one bot: the one that owns the connection is killed at its worst moments.
import assert from "node:assert/strict";
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { healthReports } from "@parley/contracts";
import { Cleanup, startTelegramPeer, temporaryFolder, type TelegramPeer } from "@parley/testing";
import { startGatewayStack, token, type GatewayStack } from "./support/stack.ts";

interface GatewayProcess {
  child: ChildProcess;
  /** Orders this process to fail at a named point, once. */
  failAt(point: string, action: string): Promise<void>;
}

async function startProcess(
  stack: GatewayStack,
  peer: TelegramPeer,
  folder: string,
  name: string,
): Promise<GatewayProcess> {
  const faults = join(folder, name);
  await mkdir(faults);
  const config = join(folder, "parley.toml");
  const settings = [
    "[channels.telegram.default]",
    'token_env = "PARLEY_CHANNEL_BOT"',
    `api_root = "${peer.url}"`,
    'owners = ["42"]',
  ];
  await writeFile(config, settings.join("\n"));
  const child = fork(new URL("../src/main.ts", import.meta.url), {
    execArgv: ["--conditions=@parley/source"],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    env: {
      PATH: process.env["PATH"] ?? "",
      PARLEY_NATS_URL: stack.stack.nats.urlFor("channel-gateway"),
      PARLEY_REPLICA: name,
      PARLEY_HTTP_PORT: "0",
      PARLEY_TOKEN: token,
      PARLEY_CONFIG: config,
      PARLEY_CHANNEL_BOT: peer.token,
      FAULT_DIR: faults,
    },
  });
  await once(child, "message");
  return { child, failAt: (point, action) => writeFile(join(faults, point), action) };
}

async function owned(stack: GatewayStack, name: string): Promise<void> {
  const bus = await stack.stack.bus("operator");
  for (;;) {
    const reports = await bus.gather(healthReports["channel-gateway"], {}, 100);
    if (reports.some(({ replica, details }) => replica === name && details["leases"] === "telegram:default")) return;
  }
}

for (const { point, what } of [
  { point: "inbox.before_put", what: "before it has kept a message" },
  { point: "inbox.after_put", what: "after it has kept a message and before it says so" },
  { point: "outbox.before_claim", what: "before it takes an answer up" },
  { point: "outbox.after_settle", what: "after it has said that an answer is sent" },
]) {
  test(`killed ${what}, the owner of a connection is replaced within five seconds; nothing is lost or doubled`, async (t) => {
    await using stack = await startGatewayStack();
    await using cleanup = new Cleanup();
    await using peer = await startTelegramPeer();
    const folder = await temporaryFolder(cleanup);
    const first = await startProcess(stack, peer, folder, "first");
    cleanup.add(async () => void first.child.kill("SIGKILL"));
    await owned(stack, "first");
    const second = await startProcess(stack, peer, folder, "second");
    cleanup.add(async () => void second.child.kill("SIGKILL"));
    peer.say("one");
    await peer.untilSent(1);
    const died = once(first.child, "exit");
    await first.failAt(point, "kill");
    peer.say("two");
    await died;
    const diedMs = performance.now();
    peer.say("three");
    await peer.untilSent(3, 20_000);
    const tookMs = performance.now() - diedMs;
    t.diagnostic(`answered again ${Math.round(tookMs)} ms after the kill`);
    assert.deepEqual(
      peer.sent.map(({ text }) => text),
      ["You said: one", "You said: two", "You said: three"],
    );
    assert.deepEqual(stack.agent.heard, ["one", "two", "three"]);
    assert.equal(peer.conflicts, 0);
    assert.ok(tookMs < 6_000, `answered again after ${Math.round(tookMs)} ms`);
  });
}
