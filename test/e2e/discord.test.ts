// Discord end to end: a person writes, the agent answers there; events come again, and the gateway that owns the connection is killed.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Cleanup, startDiscordPeer, startTestCluster, type DiscordPeer, type TestCluster } from "@parley/testing";

const cleanup = new Cleanup();
const many = { limit: 1_000, windowMs: 1_000 };
let cluster: TestCluster;
let peer: DiscordPeer;

before(async () => {
  peer = await startDiscordPeer({ limits: { channel: many, global: many } });
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

/** The answers so far, once there are `count`. */
async function untilAnswers(count: number): Promise<string[]> {
  await peer.untilSent(count);
  return peer.sent.map(({ content }) => content);
}

// design: 004.22d
test("answers a message where it was written, and a repeated event with nothing", async () => {
  const first = peer.say("say: hello **there**");
  await untilAnswers(1);
  peer.redeliver(first);
  const mention = peer.say(`<@${peer.bot.id}> say: second`, { channel: peer.channelId, from: peer.people.bob });
  await untilAnswers(2);
  const [direct, inGroup] = peer.sent;
  assert.deepEqual([direct?.content, direct?.channelId], ["hello **there**", peer.directChannelId()]);
  assert.deepEqual([inGroup?.content, inGroup?.replyToId], ["second", mention]);
  assert.ok((peer.typing.get(peer.directChannelId()) ?? 0) > 0);
});

test("loses and repeats nothing when the owner of the connection is killed at critical points", async () => {
  const before = peer.sent.length;
  const texts: string[] = [];
  for (const point of ["inbox.before_put", "inbox.after_put", "outbox.after_send"]) {
    await cluster.fault(point, "kill");
    texts.push(`killed at ${point}`);
    peer.say(`say: killed at ${point}`);
    await untilAnswers(before + texts.length);
    await peer.until("a connection", () => (peer.gateway.connected === 1 ? true : null));
  }
  peer.say("say: done");
  assert.deepEqual((await untilAnswers(before + 4)).slice(before), [...texts, "done"]);
  assert.equal(peer.gateway.identified, 1, "each takeover resumed the session");
  assert.deepEqual(await cluster.armed(), []);
});

test("sends somebody unknown nothing but a pairing code", async () => {
  const before = peer.sent.length;
  peer.say("say: let me in", { from: peer.people.bob });
  await untilAnswers(before + 1);
  assert.match(peer.sent.at(-1)?.content ?? "", /pairing approve/);
  assert.equal(peer.sent.at(-1)?.channelId, peer.directChannelId(peer.people.bob));
});
