// Two gateways and one bot: the owner of the connection is killed at critical points. Each bot is a separate account on shared servers,
// because most of the time is waiting for a lease to expire.
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
  /** Makes this process fail once at a named fault point. */
  failAt(point: string, action: string): Promise<void>;
}

const secretName = "PARLEY_CHANNEL_BOT";

/** Writes the settings file that both replicas of an account use; returns its path. */
async function writeSettings(folder: string, peer: TelegramPeer, account: string): Promise<string> {
  const file = join(folder, "parley.toml");
  const settings = [
    "[session]",
    'policy = "per_conversation"',
    // Messages that waited for an owner arrive together; the default mode would join them to one turn.
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

/** Starts the replica that is killed, as a separate process. */
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
      // Written atomically, because the process may reach the point at any moment.
      const order = join(faults, `${point}.new`);
      await writeFile(order, action);
      await rename(order, join(faults, point));
    },
  };
}

/** Resolves when the replica owns the account's connection. */
async function owned(stack: GatewayStack, name: string, account: string): Promise<void> {
  const bus = await stack.stack.bus("operator");
  for (;;) {
    const reports = await bus.gather(healthReports["channel-gateway"], {}, 100);
    const owner = reports.find(({ replica }) => replica === name);
    if (owner?.details["leases"] === `telegram:${account}`) return;
  }
}

/**
 * Starts a bot and the replica that owns its connection. `startSecond` starts the standby replica in this process. It is started late,
 * because on a stalled machine it could take the connection before the first replica is killed.
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

describe("takeover when the owner of a connection is killed", { concurrency: true, timeout: 60_000 }, () => {
  let stack: GatewayStack;
  before(async () => {
    stack = await startGatewayStack();
  });
  after(() => stack[Symbol.asyncDispose]());

  for (const { account, point, what } of [
    { account: "a", point: "inbox.before_put", what: "before it stores a message" },
    { account: "b", point: "inbox.after_put", what: "after it has stored a message, before the acknowledgement" },
    { account: "c", point: "outbox.before_claim", what: "before it claims an answer" },
    { account: "d", point: "outbox.after_settle", what: "after it has settled a sent answer" },
  ]) {
    test(`loses and duplicates nothing: ${what}`, async (t) => {
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
