// Slack by the Events API, for a deployment that only receives HTTP: a request reaches any gateway, none holds a connection, and one is
// killed.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  apiClient,
  Cleanup,
  startSlackPeer,
  startTestCluster,
  type SlackPeer,
  type TestCluster,
} from "@parley/testing";
import { pollUntil } from "@parley/testing/until";

const cleanup = new Cleanup();
const owner = "U0OWNER";
let cluster: TestCluster;
let peer: SlackPeer;

before(async () => {
  // The retries of an event outlast the restart of a gateway.
  peer = await startSlackPeer({ retryDelaysMs: [500, 1_000, 3_000, 6_000] });
  cleanup.add(() => peer.close());
  cluster = await startTestCluster(cleanup, {
    processes: ["channel-gateway"],
    replicas: { "channel-gateway": 2 },
    settings: `
[channels.slack.team]
mode = "events"
token_env = "PARLEY_CHANNEL_SLACK"
signing_secret_env = "PARLEY_CHANNEL_SIGNING"
api_root = "${peer.url}"
owners = ["${owner}"]
groups = ["C0GENERAL"]
[permissions]
ask = ["write(secret*)"]
`,
    env: {
      "channel-gateway": { PARLEY_CHANNEL_SLACK: peer.tokens.bot, PARLEY_CHANNEL_SIGNING: peer.signingSecret },
    },
  });
  peer.setRequestUrl(urlOf(0));
});
after(() => cleanup[Symbol.asyncDispose]());

function urlOf(gateway: number): string {
  return `${cluster.httpUrls[gateway] ?? ""}/channels/slack/team/events`;
}

const mention = (text: string) => `<@${peer.bot.userId}> ${text}`;

async function untilText(number: number, text: string): Promise<void> {
  await peer.until(`"${text}"`, () => (peer.sent[number]?.text === text ? true : null));
}

test("verifies the request URL of each gateway, and refuses requests that Slack did not sign", async () => {
  assert.equal(await peer.verifyUrl(urlOf(0)), true);
  assert.equal(await peer.verifyUrl(urlOf(1)), true);
  const body = JSON.stringify({ type: "url_verification", challenge: "x" });
  const headers = { "content-type": "application/json", ...peer.sign(`${body} `) };
  assert.equal((await fetch(urlOf(0), { method: "POST", headers, body })).status, 401);
});

test("answers direct messages, threads and commands through any gateway, without a connection", async () => {
  const { deliveries } = peer.say("say: hello **there**", { from: owner });
  await untilText(0, "hello there");
  peer.setRequestUrl(urlOf(1));
  const [delivery] = deliveries;
  assert.ok(delivery !== undefined);
  assert.equal(await peer.repeat(delivery), null, "a repetition at another gateway is acknowledged");
  const { ts } = peer.say(mention("say: in a thread"), { from: owner, channel: "C0GENERAL" });
  await untilText(1, "in a thread");
  assert.equal(peer.sent[1]?.threadTs, ts);
  const command = peer.command("/parley", "channels", { from: owner });
  await peer.until("the list", () => (/^slack:team +connected/.test(peer.sent[2]?.text ?? "") ? true : null));
  assert.deepEqual([command.acknowledgements, command.answer], [1, ""]);
  assert.equal(peer.sockets.opened, 0);
  assert.equal(peer.duplicates, 0);
});

test("asks with buttons, and the owner's press at another gateway decides", async () => {
  const before = peer.sent.length;
  const script = 'tool: write {"path":"secret.txt","content":"x"}\nthen\nsay: written';
  peer.say(mention(script), { from: owner, channel: "C0GENERAL" });
  const asking = () => peer.sent.slice(before).find(({ buttons }) => buttons.length > 0) ?? null;
  const question = await peer.until("the question", asking);
  peer.setRequestUrl(urlOf(0));
  const press = peer.press(question.ts, "Approve", owner);
  await peer.until("the answer", () => (peer.sent.at(-1)?.text === "written" ? true : null));
  await peer.until("the decision", () => (question.buttons.length === 0 ? true : null));
  assert.equal(press.acknowledgements, 1);
});

test("answers once when a gateway is killed between storing an event and acknowledging it", async () => {
  const before = peer.sent.length;
  await cluster.fault("inbox.after_put", "kill");
  const { deliveries } = peer.say("say: after the crash", { from: owner });
  await peer.until("the failure of the first request", () => ((deliveries[0]?.sends ?? 0) > 0 ? true : null));
  peer.setRequestUrl(urlOf(1));
  await peer.until("the acknowledgement", () => (deliveries[0]?.acknowledgements === 1 ? true : null));
  await untilText(before, "after the crash");
  // A message that arrives earlier joins the running turn, which then has one answer.
  peer.say("say: done", { from: owner });
  await untilText(before + 1, "done");
  assert.equal(peer.sent.length, before + 2);
  assert.equal(peer.duplicates, 0);
  assert.deepEqual(await cluster.armed(), []);
});

test("keeps an answer while a scope is missing, and tells the owner which", async () => {
  peer.missingScopes.add("chat:write");
  const { deliveries } = peer.say("say: waits for the scope", { from: owner });
  await peer.until("the acknowledgement", () => (deliveries[0]?.acknowledgements === 1 ? true : null));
  await peer.until("the refusal", () =>
    peer.calls.some(({ method, result }) => method === "chat.postMessage" && result === "missing_scope") ? true : null,
  );
  // The other gateway was killed before.
  const client = apiClient(cluster.httpUrls.slice(1), cluster.token);
  const { reason, waiting } = await pollUntil(async () => {
    const response = await client.fetch("/api/channels");
    const { accounts } = (await response.json()) as { accounts: { reason: string | null; waiting: number }[] };
    return accounts.find((each) => each.reason !== null);
  }, "the reason");
  assert.match(reason ?? "", /a scope is missing.*chat:write/);
  assert.equal(waiting, 1);
});
