// The preset `steered`, the later form of design 000: one thread that input joins, and `message` as the only way out.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Cleanup, startTelegramPeer, type TelegramPeer } from "@parley/testing";
import { rolesOf, startClusterFixture, waitingFor, type ClusterFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
const owner = 42;
const thread = `telegram:main:${owner}`;
let fixture: ClusterFixture;
let peer: TelegramPeer;

before(async () => {
  peer = await startTelegramPeer();
  cleanup.add(() => peer.close());
  fixture = await startClusterFixture(cleanup, "steered", {
    processes: [],
    model: true,
    secrets: { PARLEY_CHANNEL_TELEGRAM: peer.token },
    settings: `
[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "${peer.url}"
owners = ["${owner}"]
`,
  });
});
after(() => cleanup[Symbol.asyncDispose]());

const send = (text: string, to: string) => `tool: message ${JSON.stringify({ text, to })}`;
const sent = () => peer.sent.map(({ text }) => text);

// design: preset.2
test("lets input of another conversation join the running turn at its next model call", async () => {
  const first = await fixture.client.post(`${waitingFor("go")}\nthen\nsay: both seen`, { conversation: "front" });
  await fixture.happens((event) => event.type === "tool.started" && event.tool === "exec");
  const second = await fixture.client.post("say: never", { conversation: "phone" });
  await writeFile(join(fixture.cluster.home, "workspace", "go"), "");
  const [one, other] = [await fixture.ended(first), await fixture.ended(second)];
  assert.equal(other.turnId, one.turnId);
  assert.equal(one.modelSteps, 2);
  assert.equal(rolesOf(one.messages), "user assistant tool user assistant");
  const { messages } = fixture.lastRequest();
  assert.match(messages.at(-1) ?? "", /http:default:phone[\s\S]*say: never/);
});

// design: 000.37
test("sends only what the tool `message` says, to the address that begins the input", async () => {
  peer.say(`say: private\n${send("public", thread)}\nthen\nsay: more private`, { from: owner });
  await peer.untilSent(1);
  await fixture.happens((event) => event.type === "turn.finished" && event.text.includes("more private"));
  const { messages } = fixture.lastRequest();
  assert.ok(
    messages.some((message) => message.startsWith("user: ") && message.includes(thread)),
    messages.join("\n"),
  );
  // A later message of the same conversation follows everything that the first turn sent.
  peer.say(send("second", thread), { from: owner });
  await peer.untilSent(2);
  assert.deepEqual(sent(), ["public", "second"]);
});

// design: 000.39
test("ends the turn immediately when the model sleeps, and sends nothing", async () => {
  peer.say(`tool: sleep {"reason":"nothing to do"}\nthen\n${send("never", thread)}`, { from: owner });
  const end = await fixture.happens((event) => event.type === "turn.finished" && event.text === "(asleep)");
  assert.ok(end.type === "turn.finished" && end.state === "done");
  peer.say(send("third", thread), { from: owner });
  await peer.untilSent(3);
  assert.deepEqual(sent(), ["public", "second", "third"]);
});

// design: 000.37c
test("offers the thirteen tools of the design without sub-agents, `sleep`, and two for files of messages", async () => {
  await fixture.turn("say: hello");
  const thirteen = "apply_patch cron edit exec glob grep ls memory_get memory_search message process read write".split(
    " ",
  );
  const expected = [...thirteen, "sleep", "attach", "save_attachment"];
  assert.deepEqual(fixture.lastRequest().tools.toSorted(), expected.toSorted());
});
