import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import fastify, { type FastifyInstance } from "fastify";
import { telegramChannel, type TelegramAccount } from "@parley/contracts";
import { startTelegramPeer } from "@parley/testing";
import type { ChannelAdapter } from "../src/channels/channel.ts";
import { allowedUpdates } from "../src/channels/telegram/parse.ts";
import { createTelegram } from "../src/channels/telegram/index.ts";
import { TestHost } from "./support/channel-host.ts";

const token = "7000001:AAStandInTokenOfAStandInBotForTests";
const secret = "hook-secret_1";

function adapterFor(apiRoot: string, webhookSecret: string | null = secret): ChannelAdapter {
  const settings: TelegramAccount = {
    owners: [],
    allow_from: [],
    dm_policy: "open",
    groups: [],
    require_mention: true,
    token_env: "PARLEY_CHANNEL_TELEGRAM",
    mode: "webhook",
    api_root: apiRoot,
  };
  return createTelegram("main", settings, { token_env: token, webhook_secret_env: webhookSecret ?? "" });
}

async function gateway(apiRoot: string, host: TestHost): Promise<{ app: FastifyInstance; url: string }> {
  const app = fastify({ forceCloseConnections: true });
  adapterFor(apiRoot).routes?.(app, host);
  const root = await app.listen({ port: 0, host: "127.0.0.1" });
  return { app, url: `${root}/channels/telegram/main/webhook` };
}

async function setWebhook(apiRoot: string, url: string, secretToken = secret): Promise<void> {
  await fetch(`${apiRoot}/bot${token}/setWebhook`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ url, secret_token: secretToken, allowed_updates: ["message"] }),
  });
}

test("acknowledges an update only after it is stored; Telegram redelivers in order", async () => {
  await using peer = await startTelegramPeer();
  const host = new TestHost();
  const { app, url } = await gateway(peer.url, host);
  try {
    host.refuseNext();
    host.refuseNext();
    const first = peer.say("one");
    peer.say("two");
    await setWebhook(peer.url, url);
    await host.untilAccepted(2);
    assert.deepEqual(host.texts, ["one", "two"]);
    assert.equal(peer.deliveries(first), 3);
    await peer.until("everything to be confirmed", () => (peer.pending === 0 ? true : null));
  } finally {
    await app.close();
  }
});

test("refuses updates without the secret", async () => {
  await using peer = await startTelegramPeer();
  const host = new TestHost();
  const { app, url } = await gateway(peer.url, host);
  try {
    const post = async (headers: Record<string, string>, body: string): Promise<number> => {
      const sent = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body,
      });
      return sent.status;
    };
    const update = JSON.stringify({ update_id: 1, message: {} });
    const header = "x-telegram-bot-api-secret-token";
    assert.equal(await post({}, update), 401);
    assert.equal(await post({ [header]: `${secret}x` }, update), 401);
    assert.equal(await post({ [header]: secret }, "{}"), 400);
    assert.equal(await post({ [header]: secret }, update), 200, "skipped, but acknowledged");
    assert.equal(host.attempts, 0);
  } finally {
    await app.close();
  }
});

test("refuses updates until the bot's identity is known", async () => {
  await using peer = await startTelegramPeer();
  const host = new TestHost();
  const { app, url } = await gateway(peer.url, host);
  try {
    peer.fail("getMe", { kind: "server_error" });
    const update = peer.say("@parley_bot hi", { chat: -1001 });
    await setWebhook(peer.url, url);
    const [draft] = await host.untilAccepted(1);
    assert.deepEqual({ addressed: draft?.addressed, text: draft?.text }, { addressed: true, text: "hi" });
    assert.equal(peer.deliveries(update), 2);
  } finally {
    await app.close();
  }
});

test("is documented with a registration for every kind of update that it reads", () => {
  const page = readFileSync(new URL("../../../docs/channels/telegram.md", import.meta.url), "utf8");
  const kinds = JSON.stringify(allowedUpdates);
  assert.ok(page.includes(`allowed_updates=${kinds}`));
  assert.ok(telegramChannel.setUp.some((step) => step.includes("setWebhook") && step.includes(kinds)));
});

test("neither polls nor owns a connection in webhook mode", () => {
  const adapter = adapterFor("http://127.0.0.1:1");
  assert.equal("connect" in adapter, false);
  assert.equal(adapter.ownedConnection, false);
  assert.throws(() => adapterFor("http://127.0.0.1:1", null), /webhook_secret_env/);
});
