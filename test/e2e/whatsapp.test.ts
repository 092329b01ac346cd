// WhatsApp end to end: a person writes, the agent answers there; deliveries come again, and the gateway that stored a message is killed.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import { Cleanup, startTestCluster, startWhatsAppPeer, type TestCluster, type WhatsAppPeer } from "@parley/testing";

const cleanup = new Cleanup();
const owner = "491700000042";
let cluster: TestCluster;
let peer: WhatsAppPeer;

before(async () => {
  peer = await startWhatsAppPeer();
  cleanup.add(() => peer.close());
  cluster = await startTestCluster(cleanup, {
    processes: ["channel-gateway"],
    replicas: { "channel-gateway": 2 },
    settings: `
[channels.whatsapp.main]
token_env = "PARLEY_CHANNEL_TOKEN"
app_secret_env = "PARLEY_CHANNEL_SECRET"
verify_token_env = "PARLEY_CHANNEL_VERIFY"
phone_number_id = "${peer.phoneNumberId}"
api_root = "${peer.url}"
owners = ["${owner}"]
`,
    env: {
      "channel-gateway": {
        PARLEY_CHANNEL_TOKEN: peer.token,
        PARLEY_CHANNEL_SECRET: peer.appSecret,
        PARLEY_CHANNEL_VERIFY: "verify-me",
      },
    },
  });
  await peer.subscribe(webhookOf(0), "verify-me");
});
after(() => cleanup[Symbol.asyncDispose]());

function webhookOf(gateway: number): string {
  return `${cluster.httpUrls[gateway] ?? ""}/channels/whatsapp/main/webhook`;
}

const texts = () => peer.sent.filter(({ type }) => type === "text").map(({ text }) => text);

async function untilTexts(count: number): Promise<string[]> {
  return peer.until(`${count} answers`, () => (texts().length >= count ? texts() : null));
}

const acknowledged = () => peer.until("acknowledgement", () => (peer.pending === 0 ? true : null));

// design: 004.22w
test("answers once in the conversation of a message when WhatsApp repeats its delivery", async () => {
  const message = peer.message("text", { body: "say: hello *there*" }, { from: owner });
  peer.batch([message]);
  await untilTexts(1);
  peer.batch([message]);
  peer.batch([message, peer.message("text", { body: "say: second" }, { from: owner })]);
  await untilTexts(2);
  assert.deepEqual(texts(), ["hello _there_", "second"]);
  assert.equal(peer.read.has(message.id), true, "marked as read with the typing indicator");
  assert.equal(peer.duplicates, 0);
});

test("answers once when the gateway is killed between storing a message and acknowledging it", async () => {
  const before = texts().length;
  await cluster.fault("inbox.after_put", "kill");
  const id = peer.say("say: after the crash", { from: owner });
  await peer.until("a delivery", () => (peer.deliveries(id) > 0 ? true : null));
  await peer.until("a refused delivery", () => (peer.deliveries(id) > 1 ? true : null));
  peer.webhook(webhookOf(1));
  await acknowledged();
  peer.say("say: done", { from: owner });
  assert.deepEqual((await untilTexts(before + 2)).slice(before), ["after the crash", "done"]);
  assert.equal(peer.duplicates, 0);
});

test("stores a file of a person and sends it back", async () => {
  const content = Buffer.from("a note with an ä");
  const id = createHash("sha256").update(content).digest("hex");
  const call = JSON.stringify({ text: "here it is", attachments: [{ id, name: "note.txt" }] });
  const caption = `tool: message ${call}\nthen\nsay: sent it`;
  peer.sendMedia("document", content, "text/plain", { filename: "note.txt", caption }, { from: owner });
  const file = await peer.until("the file", () => peer.sent.find((sent) => sent.file !== null)?.file ?? null);
  assert.deepEqual(file, { name: "note.txt", mediaType: "text/plain", content });
});

test("answers nothing to a stranger but a pairing code", async () => {
  const stranger = "491700000099";
  let count = peer.sent.length;
  peer.say("say: let me in", { from: stranger, name: owner });
  // The answer to an earlier message may still arrive.
  do await peer.untilSent(++count);
  while (peer.sent[count - 1]?.to !== stranger);
  assert.match(peer.sent[count - 1]?.text ?? "", /pairing approve/);
});
