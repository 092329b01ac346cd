// Two gateways and one bot: the owner of the connection is killed at critical points. Each bot is a separate account on shared servers,
// because most of the time is waiting for a lease to expire.
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Cleanup, startTelegramPeer, temporaryFolder, testBaseConfig, type TelegramPeer } from "@parley/testing";
import { pollUntil } from "@parley/testing/until";
import { Client } from "pg";
import { owned, startProcess } from "./support/gateway-process.ts";
import { startGatewayStack, type GatewayStack } from "./support/stack.ts";

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

/**
 * Starts a bot and the replica that owns its connection. `startSecond` starts another replica in this process. It is started after the
 * kill, because a replica that joins may get the connection.
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

describe("takeover when the owner of a connection is killed", { concurrency: true }, () => {
  let stack: GatewayStack;
  let sql: Client;
  /** What the agent waits for before it answers a message. */
  const awaited = new Map<string, Promise<unknown>>();
  before(async () => {
    stack = await startGatewayStack();
    sql = new Client({ connectionString: stack.stack.postgres.ownerUrl });
    await sql.connect();
    stack.agent.script = async (said) => {
      await awaited.get(said);
      return { deltas: ["You said: ", said] };
    };
  });
  after(async () => {
    await sql.end();
    await stack[Symbol.asyncDispose]();
  });
  const isSettled = async (account: string): Promise<boolean> => {
    const found = await sql.query("SELECT FROM parley.outbox WHERE account = $1 AND state = 'sent'", [account]);
    return found.rowCount === 1;
  };

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
      // The fault is for the second message: the first answer must not be in progress.
      await pollUntil(() => isSettled(account), "the first answer");
      const died = once(first.child, "exit");
      // Otherwise the gateway could have claimed the answer when it dies, and its outcome would be unknown.
      if (point === "inbox.after_put") awaited.set(two, died);
      await first.failAt(point, "kill");
      peer.say(two);
      await died;
      const diedMs = performance.now();
      await startSecond();
      peer.say(three);
      await peer.untilSent(3);
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
