// Slack end to end: a person writes, the agent answers there; events come again, and the gateway that holds the connection is killed.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Cleanup, startSlackPeer, startTestCluster, type SlackPeer, type TestCluster } from "@parley/testing";

const cleanup = new Cleanup();
const owner = "U0OWNER";
let cluster: TestCluster;
let peer: SlackPeer;

before(async () => {
  // The retries of an event outlast the time until another gateway is connected.
  peer = await startSlackPeer({ retryDelaysMs: [1_000, 3_000, 6_000] });
  cleanup.add(() => peer.close());
  cluster = await startTestCluster(cleanup, {
    processes: ["channel-gateway"],
    replicas: { "channel-gateway": 2 },
    settings: `
[channels.slack.team]
token_env = "PARLEY_CHANNEL_SLACK"
app_token_env = "PARLEY_CHANNEL_SLACK_APP"
api_root = "${peer.url}"
owners = ["${owner}"]
groups = ["C0GENERAL"]
acknowledge = true
[permissions]
ask = ["write(secret*)"]
`,
    env: {
      "channel-gateway": { PARLEY_CHANNEL_SLACK: peer.tokens.bot, PARLEY_CHANNEL_SLACK_APP: peer.tokens.app },
    },
  });
  await peer.untilConnected();
});
after(() => cleanup[Symbol.asyncDispose]());

const mention = (text: string) => `<@${peer.bot.userId}> ${text}`;

/** Resolves when the message with this number has this text: it may be shown while it is written. */
async function untilText(number: number, text: string): Promise<void> {
  await peer.until(`"${text}"`, () => (peer.sent[number]?.text === text ? true : null));
}

async function acknowledged(): Promise<void> {
  const done = () => (peer.deliveries.every(({ acknowledgements }) => acknowledgements > 0) ? true : null);
  await peer.until("all acknowledgements", done);
}

// design: 004.22s
test("answers once in the conversation of a message when Slack repeats its event", async () => {
  const { deliveries } = peer.say("say: hello **there**", { from: owner });
  await untilText(0, "hello there");
  const [delivery] = deliveries;
  assert.ok(delivery !== undefined);
  assert.equal(await peer.repeat(delivery), null);
  const { ts } = peer.say(mention("say: in a thread"), { from: owner, channel: "C0GENERAL" });
  await untilText(1, "in a thread");
  peer.say(mention("say: there again"), { from: owner, channel: "C0GENERAL", threadTs: ts });
  peer.say("say: nothing, it is not mentioned", { from: owner, channel: "C0GENERAL" });
  peer.say(mention("say: nothing, it is another channel"), { from: owner, channel: "C0OTHER" });
  await untilText(2, "there again");
  await acknowledged();
  assert.deepEqual(
    peer.sent.map(({ channel, threadTs, text }) => [channel, threadTs, text]),
    [
      ["D0OWNER", null, "hello there"],
      ["C0GENERAL", ts, "in a thread"],
      ["C0GENERAL", ts, "there again"],
    ],
  );
  assert.equal(peer.duplicates, 0);
});

test("shows a long answer while it is written, in one message, and marks the question meanwhile", async () => {
  const before = peer.sent.length;
  const { ts } = peer.say(mention("wait: 60\nwords: 45"), { from: owner, channel: "C0GENERAL" });
  const [growing] = (await peer.untilSent(before + 1)).slice(before);
  assert.ok(growing !== undefined);
  assert.match(growing.postedText, / …$/);
  const mark = `C0GENERAL:${ts}:eyes`;
  assert.equal(peer.reactions.has(mark), true);
  const whole = () => (growing.text.split(" ").length === 45 && !growing.text.endsWith("…") ? true : null);
  await peer.until("the whole answer", whole);
  await peer.until("the end of the mark", () => (peer.reactions.has(mark) ? null : true));
  assert.equal(peer.sent.length, before + 1);
  assert.ok(growing.edits > 0 && growing.threadTs === ts);
  assert.equal(peer.statuses.find(({ threadTs }) => threadTs === ts)?.status, "is thinking…");
});

test("asks with buttons in the thread, and only the owner's press decides", async () => {
  const before = peer.sent.length;
  const script = 'tool: write {"path":"secret.txt","content":"x"}\nthen\nsay: written';
  const { ts } = peer.say(mention(script), { from: owner, channel: "C0GENERAL" });
  const asking = () => peer.sent.slice(before).find(({ buttons }) => buttons.length > 0) ?? null;
  const question = await peer.until("the question", asking);
  assert.deepEqual([question.threadTs, question.buttons[0]?.label], [ts, "Approve"]);
  peer.press(question.ts, "Approve", "U0EVE");
  const refusal = () => peer.sent.find(({ onlyFor }) => onlyFor === "U0EVE") ?? null;
  assert.match((await peer.until("the refusal", refusal)).text, /may not decide|owner only/);
  const press = peer.press(question.ts, "Approve", owner);
  await peer.until("the answer", () => (peer.sent.at(-1)?.text === "written" ? true : null));
  await peer.until("the decision", () => (question.buttons.length === 0 ? true : null));
  assert.match(question.text, /U0OWNER: Allowed|u0owner: Allowed/i);
  assert.equal(press.acknowledgements, 1);
});

test("answers once when the gateway is killed between storing an event and acknowledging it", async () => {
  const before = peer.sent.length;
  const connections = peer.sockets.opened;
  await cluster.fault("inbox.after_put", "kill");
  const { deliveries } = peer.say("say: after the crash", { from: owner });
  await peer.until("another connection", () => (peer.sockets.opened > connections ? true : null));
  await acknowledged();
  peer.say("say: done", { from: owner });
  await untilText(before, "after the crash");
  await untilText(before + 1, "done");
  assert.equal(peer.sent.length, before + 2);
  assert.ok((deliveries[0]?.sends ?? 0) > 1, "it was delivered again");
  assert.equal(peer.duplicates, 0);
});

test("sends nothing but a pairing code to an unknown person", async () => {
  const before = peer.sent.length;
  peer.name("U0EVE", owner);
  peer.say("say: let me in", { from: "U0EVE", fields: { username: owner } });
  await peer.untilSent(before + 1);
  const sent = peer.sent.slice(before).find(({ channel }) => channel === "D0EVE");
  assert.match(sent?.text ?? "", /pairing approve/);
});
