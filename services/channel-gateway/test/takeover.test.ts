// Two gateways and one bot: the one that owns the connection is killed at its worst moments. Each bot is an account of its own
// on the same servers, because most of the time is waiting for a lease to run out.
import assert from "node:assert/strict";
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { healthReports } from "@parley/contracts";
import { Cleanup, startTelegramPeer, temporaryFolder, testBaseConfig, type TelegramPeer } from "@parley/testing";
import { startGatewayStack, token, type GatewayStack } from "./support/stack.ts";

interface GatewayProcess {
  child: ChildProcess;
  /** Orders this process to fail at a named point, once. */
  failAt(point: string, action: string): Promise<void>;
}

const secretName = "PARLEY_CHANNEL_BOT";

/** Where the settings lie that both replicas of an account have. */
async function writeSettings(folder: string, peer: TelegramPeer, account: string): Promise<string> {
  const file = join(folder, "parley.toml");
  const settings = [
    "[session]",
    'policy = "per_conversation"',
    // What waited while nobody owned the connection comes all at once: by default it would be one turn.
    "[queue]",
    'mode = "queue"',
    `[channels.telegram.${account}]`,
    `token_env = "${secretName}"`,
    `api_root = "${peer.url}"`,
    'owners = ["42"]',
  ];
  await writeFile(file, settings.join("\n"));
  return file;
}

/** The replica that is killed, as a process of its own. */
async function startProcess(
  stack: GatewayStack,
  replica: string,
  folder: string,
  env: Record<string, string>,
): Promise<GatewayProcess> {
  const faults = join(folder, "faults");
  await mkdir(faults);
  const child = fork(new URL("../src/main.ts", import.meta.url), {
    execArgv: ["--conditions=@parley/source"],
    stdio: ["ignore", process.env["PARLEY_TEST_LOGS"] === undefined ? "ignore" : "inherit", "inherit", "ipc"],
    env: {
      PATH: process.env["PATH"] ?? "",
      NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? "",
      PARLEY_NATS_URL: stack.stack.nats.urlFor("channel-gateway"),
      PARLEY_REPLICA: replica,
      PARLEY_HTTP_PORT: "0",
      PARLEY_TOKEN: token,
      FAULT_DIR: faults,
      ...env,
    },
  });
  await once(child, "message");
  return {
    child,
    failAt: async (point, action) => {
      // Renamed when it is whole: the process may reach the point at any moment, and takes what it finds.
      const order = join(faults, `${point}.new`);
      await writeFile(order, action);
      await rename(order, join(faults, point));
    },
  };
}

/** Resolves when a replica owns the account's connection. */
async function owned(stack: GatewayStack, name: string, account: string): Promise<void> {
  const bus = await stack.stack.bus("operator");
  for (;;) {
    const reports = await bus.gather(healthReports["channel-gateway"], {}, 100);
    const owner = reports.find(({ replica }) => replica === name);
    if (owner?.details["leases"] === `telegram:${account}`) return;
  }
}

/**
 * A bot and the replica that owns its connection. `startSecond` starts the one that waits for it, in this process, since nobody kills it:
 * late, because a machine that stands still for seconds lets it have the connection without anybody's death.
 */
async function startOwned(stack: GatewayStack, account: string, cleanup: Cleanup) {
  const peer = await startTelegramPeer();
  cleanup.add(() => peer.close());
  const folder = await temporaryFolder(cleanup);
  const file = await writeSettings(folder, peer, account);
  const env = { PARLEY_CONFIG: file, [secretName]: peer.token };
  const first = await startProcess(stack, `${account}-first`, folder, env);
  cleanup.add(async () => void first.child.kill("SIGKILL"));
  await owned(stack, `${account}-first`, account);
  const startSecond = async () => {
    const { settings } = testBaseConfig(stack.stack.nats, "channel-gateway", env);
    const channelSecrets = new Map([[secretName, peer.token]]);
    const second = await stack.gateway({ name: `${account}-second`, config: { settings, channelSecrets } });
    cleanup.add(() => second.close());
  };
  return { peer, first, startSecond };
}

describe("the owner of a connection is killed", { concurrency: true, timeout: 60_000 }, () => {
  let stack: GatewayStack;
  before(async () => {
    stack = await startGatewayStack();
  });
  after(() => stack[Symbol.asyncDispose]());

  for (const { account, point, what } of [
    { account: "a", point: "inbox.before_put", what: "before it has kept a message" },
    { account: "b", point: "inbox.after_put", what: "after it has kept a message and before it says so" },
    { account: "c", point: "outbox.before_claim", what: "before it takes an answer up" },
    { account: "d", point: "outbox.after_settle", what: "after it has said that an answer is sent" },
  ]) {
    test(`${what}: another takes its place; nothing is lost or doubled`, async (t) => {
      const cleanup = new Cleanup();
      t.after(() => cleanup[Symbol.asyncDispose]());
      const { peer, first, startSecond } = await startOwned(stack, account, cleanup);
      const texts = ["one", "two", "three"].map((text) => `${text} of ${account}`);
      const [one = "", two = "", three = ""] = texts;
      peer.say(one);
      await peer.untilSent(1);
      const died = once(first.child, "exit");
      await first.failAt(point, "kill");
      await startSecond();
      peer.say(two);
      await died;
      const diedMs = performance.now();
      peer.say(three);
      await peer.untilSent(3, 20_000);
      t.diagnostic(`answered again ${Math.round(performance.now() - diedMs)} ms after the kill`);
      assert.deepEqual(
        peer.sent.map(({ text }) => text),
        texts.map((text) => `You said: ${text}`),
      );
      assert.deepEqual(
        stack.agent.heard.filter((said) => said.endsWith(` of ${account}`)),
        texts,
      );
      assert.equal(peer.conflicts, 0);
    });
  }
});
