// Signal end to end: a person writes, the agent answers there; the gateway that owns the connection is killed before and after it has
// stored a message.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Cleanup, startSignalPeer, startTestCluster, type SignalPeer, type TestCluster } from "@parley/testing";

const cleanup = new Cleanup();
let cluster: TestCluster;
let peer: SignalPeer;

before(async () => {
  peer = await startSignalPeer({ numbersEvents: true });
  cleanup.add(() => peer.close());
  cluster = await startTestCluster(cleanup, {
    processes: ["channel-gateway"],
    replicas: { "channel-gateway": 2 },
    settings: `
[queue]
mode = "queue"
[channels.signal.main]
number = "${peer.number}"
daemon_url = "${peer.url}"
owners = ["${peer.ann.uuid}"]
groups = ["${peer.team.id}"]
`,
  });
});
after(() => cleanup[Symbol.asyncDispose]());

const texts = () => peer.sent.map(({ text }) => text);
const untilTexts = (count: number) => peer.until(`${count} answers`, () => (texts().length >= count ? texts() : null));

// design: 000.28k
test("answers in the conversation of a message, and shows typing until then", async () => {
  peer.say("say: hello **there**");
  await untilTexts(1);
  await peer.until("the end of typing", () => peer.typing.find(({ stop }) => stop) ?? null);
  assert.deepEqual(peer.sent[0]?.styles, [{ style: "BOLD", text: "there" }]);
  assert.equal(peer.sent[0]?.to, peer.ann.uuid);
  assert.deepEqual(peer.typing[0], { to: peer.ann.uuid, stop: false });
});

test("answers in a listed group only when it is mentioned, with a quote", async () => {
  peer.say("say: not for you", { group: peer.team, from: peer.ben });
  const mentions = [{ start: 0, length: 1, name: "Parley", number: peer.number, uuid: "x" }];
  const asked = peer.say("\uFFFC say: in the group", { group: peer.team, from: peer.ben, fields: { mentions } });
  await untilTexts(2);
  assert.equal(texts()[1], "in the group");
  assert.equal(peer.sent[1]?.to, `group:${peer.team.id}`);
  assert.deepEqual(peer.sent[1]?.quote, { timestamp: asked, author: peer.ben.uuid });
});

for (const [point, what] of [
  ["inbox.before_put", "before it has stored a message"],
  ["inbox.after_put", "after it has stored a message"],
] as const) {
  test(`answers once when the gateway is killed ${what}`, async () => {
    const before = texts().length;
    await cluster.fault(point, "kill");
    peer.say(`say: ${point}`);
    peer.say(`say: behind ${point}`);
    assert.deepEqual((await untilTexts(before + 2)).slice(before), [point, `behind ${point}`]);
    assert.deepEqual(await cluster.armed(), []);
  });
}
