// Telegram in webhook mode: Telegram calls one gateway of two, none polls, and the called one is killed.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Cleanup, startTelegramPeer, startTestCluster, type TelegramPeer, type TestCluster } from "@parley/testing";

const cleanup = new Cleanup();
const secret = "a-secret-of-the-hook";
const owner = 42;
let cluster: TestCluster;
let peer: TelegramPeer;

before(async () => {
  peer = await startTelegramPeer({ redeliveryMs: 200 });
  cleanup.add(() => peer.close());
  cluster = await startTestCluster(cleanup, {
    processes: ["channel-gateway"],
    replicas: { "channel-gateway": 2 },
    settings: `
[channels.telegram.main]
mode = "webhook"
token_env = "PARLEY_CHANNEL_TELEGRAM"
webhook_secret_env = "PARLEY_CHANNEL_HOOK"
api_root = "${peer.url}"
owners = ["${owner}"]
[permissions]
ask = ["write(secret*)"]
`,
    env: { "channel-gateway": { PARLEY_CHANNEL_TELEGRAM: peer.token, PARLEY_CHANNEL_HOOK: secret } },
  });
  await register(0);
});
after(() => cleanup[Symbol.asyncDispose]());

/** Calls setWebhook as the documentation says. */
async function register(gateway: number): Promise<void> {
  const url = `${cluster.httpUrls[gateway] ?? ""}/channels/telegram/main/webhook`;
  const kinds = ["message", "edited_message", "callback_query", "my_chat_member", "message_reaction"];
  const body = new URLSearchParams({ url, secret_token: secret, allowed_updates: JSON.stringify(kinds) });
  const { status } = await fetch(`${peer.url}/bot${peer.token}/setWebhook`, { method: "POST", body });
  assert.equal(status, 200);
}

const texts = () => peer.sent.map(({ text }) => text);

async function untilLast(text: string): Promise<void> {
  await peer.until(`"${text}"`, () => (texts().at(-1) === text ? true : null));
}

test("answers without polling, and decides by a pressed button", async () => {
  peer.say("say: hello **there**", { from: owner, chat: owner });
  await untilLast("hello there");
  const script = 'tool: write {"path":"secret.txt","content":"x"}\nthen\nsay: written';
  peer.say(script, { from: owner, chat: owner });
  const asking = () => peer.sent.find(({ buttons }) => buttons.length > 0) ?? null;
  const question = await peer.until("the question", asking);
  peer.press(question.messageId, "Approve");
  await untilLast("written");
  assert.equal(peer.calls.filter(({ method }) => method === "getUpdates").length, 0);
});

test("answers once when the called gateway is killed between storing an update and acknowledging it", async () => {
  const before = peer.sent.length;
  await cluster.fault("inbox.after_put", "kill");
  const update = peer.say("say: after the crash", { from: owner, chat: owner });
  await peer.until("the second delivery", () => (peer.deliveries(update) > 1 ? true : null));
  await register(1);
  await peer.until("the acknowledgement", () => (peer.pending === 0 ? true : null));
  peer.say("say: done", { from: owner, chat: owner });
  await untilLast("done");
  assert.deepEqual(texts().slice(before), ["after the crash", "done"]);
  assert.deepEqual(await cluster.armed(), []);
});
