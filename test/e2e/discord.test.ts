// Discord end to end: the agent answers in the conversation of a message, also when Discord repeats events and when the gateway that owns
// the connection is killed.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Cleanup, startDiscordPeer, startTestCluster, type DiscordPeer, type TestCluster } from "@parley/testing";

const cleanup = new Cleanup();
/** Limits that no test reaches. */
const unlimited = { limit: 1_000, windowMs: 1_000 };
let cluster: TestCluster;
let peer: DiscordPeer;

before(async () => {
  peer = await startDiscordPeer({ limits: { channel: unlimited, global: unlimited } });
  cleanup.add(() => peer.close());
  cluster = await startTestCluster(cleanup, {
    processes: ["channel-gateway"],
    replicas: { "channel-gateway": 2 },
    settings: `
[channels.discord.main]
token_env = "PARLEY_CHANNEL_TOKEN"
api_root = "${peer.url}"
owners = ["${peer.people.ann}"]
groups = ["${peer.channelId}"]
`,
    env: { "channel-gateway": { PARLEY_CHANNEL_TOKEN: peer.token } },
  });
  await peer.until("the connection", () => (peer.gateway.connected === 1 ? true : null));
});
after(() => cleanup[Symbol.asyncDispose]());

/** Waits for `count` complete answers and returns them: one can be shown while it is written. */
async function untilAnswers(count: number): Promise<string[]> {
  return peer.until(`${count} answers`, () => {
    const answers = peer.sent.map(({ content }) => content);
    return answers.length >= count && answers.every((text) => !text.endsWith(" …")) ? answers : null;
  });
}

// design: 004.22d
test("answers once in the conversation of a message when Discord repeats its event", async () => {
  const directMessage = peer.say("say: hello **there**");
  await untilAnswers(1);
  peer.redeliver(directMessage);
  const mention = peer.say(`<@${peer.bot.id}> say: second`, { channel: peer.channelId, from: peer.people.bob });
  await untilAnswers(2);
  const [directAnswer, groupAnswer] = peer.sent;
  assert.deepEqual([directAnswer?.content, directAnswer?.channelId], ["hello **there**", peer.directChannelId()]);
  assert.deepEqual([groupAnswer?.content, groupAnswer?.replyToId], ["second", mention]);
  assert.ok((peer.typing.get(peer.directChannelId()) ?? 0) > 0);
});

test("loses and repeats no answer when the owner of the connection is killed at critical points", async () => {
  const sentBefore = peer.sent.length;
  const expected: string[] = [];
  for (const faultPoint of ["inbox.before_put", "inbox.after_put", "outbox.after_send"]) {
    await cluster.fault(faultPoint, "kill");
    expected.push(`killed at ${faultPoint}`);
    peer.say(`say: killed at ${faultPoint}`);
    await untilAnswers(sentBefore + expected.length);
    await peer.until("a connection", () => (peer.gateway.connected === 1 ? true : null));
  }
  peer.say("say: done");
  assert.deepEqual((await untilAnswers(sentBefore + 4)).slice(sentBefore), [...expected, "done"]);
  assert.equal(peer.gateway.identified, 1, "each takeover resumed the session");
  assert.deepEqual(await cluster.armed(), []);
});

test("sends only a pairing code when the sender is unknown", async () => {
  const sentBefore = peer.sent.length;
  peer.say("say: let me in", { from: peer.people.bob });
  await untilAnswers(sentBefore + 1);
  assert.match(peer.sent.at(-1)?.content ?? "", /pairing approve/);
  assert.equal(peer.sent.at(-1)?.channelId, peer.directChannelId(peer.people.bob));
});
