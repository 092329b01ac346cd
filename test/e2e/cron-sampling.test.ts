// Requests of MCP servers in turns that no person started, on a whole cluster. A job's questions go to the job's delivery address,
// and are answered there or time out. A heartbeat has no questions, and no turn waits for a person who cannot answer.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { store, type Schedule } from "@parley/contracts";
import { Cleanup, startTelegramPeer, untilServersReady, type TelegramPeer } from "@parley/testing";
import { everything, ownServer } from "../../services/tool-runner/test/mcp/programs.ts";
import { startClusterFixture, type ClusterFixture } from "./presets/support/fixture.ts";
import { beatThatFires, createJob, finishedRuns, runJob, writeDocument } from "./support/jobs.ts";

const cleanup = new Cleanup();
let fixture: ClusterFixture;
let telegram: TelegramPeer;

before(async () => {
  telegram = await startTelegramPeer();
  cleanup.add(() => telegram.close());
  const server = (name: string, args: string[], more: string) => `
[mcp.servers.${name}]
command = "${process.execPath}"
args = ${JSON.stringify(args)}
risk = "low"
era = "legacy"
${more}
`;
  const sampler = ["--conditions=@parley/source", ownServer("sampler")];
  fixture = await startClusterFixture(cleanup, null, {
    processes: ["agent-core", "tool-runner"],
    replicas: { "agent-core": 2, "tool-runner": 2 },
    settings: `
[agent]
max_concurrent_turns = 1

[permissions]
# Results of these servers taint the owner's thread, and rules that name a tool in full still allow it there.
allow = ["cron", "mcp__asking__ask", "mcp__hasty__ask", "mcp__form__trigger-elicitation-request", "mcp__brief__trigger-elicitation-request"]

[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "${telegram.url}"
owners = ["1"]
allow_from = ["2"]
groups = ["-100"]

${server("asking", sampler, "sampling = { enabled = true }")}
${server("hasty", sampler, "sampling = { enabled = true }\nquestion_seconds = 1")}
${server("form", [everything, "stdio"], "")}
${server("brief", [everything, "stdio"], "question_seconds = 1")}
`,
    secrets: { PARLEY_CHANNEL_TELEGRAM: telegram.token },
  });
  await untilServersReady(fixture.client, ["asking", "hasty", "form", "brief"], 2);
});
after(() => cleanup[Symbol.asyncDispose]());

const sample = (server: string, input: object = {}) =>
  `tool: mcp__${server}__ask ${JSON.stringify({ prompt: "go\nsay: forty-two", ...input })}\nthen\nsay: the job is done`;
const elicit = (server: string) => `tool: mcp__${server}__trigger-elicitation-request {}\nthen\nsay: the job is done`;

const chat = (conversation: string) => ({ channel: "telegram", account: "main", conversation });

/** A job that is due once a year, so that only `runJob` starts it. By default it delivers to the owner's chat. */
async function job(prompt: string, more: Partial<Schedule> = {}): Promise<Schedule> {
  return createJob(fixture.client, { schedule: "@yearly", target: "own", deliverTo: chat("1"), prompt, ...more });
}

/** Waits for a message that matches, among those sent after the first `from`. */
const seen = (fits: RegExp, from: number, chatId = 1) =>
  telegram.until(`a message like ${String(fits)}`, () => {
    const found = telegram.sent.slice(from).find(({ chatId: to, text }) => Number(to) === chatId && fits.test(text));
    return found ?? null;
  });
const sentSoFar = () => telegram.sent.length;
const mayAnswer = /MCP server "\w+"[^]*May it request answers from a model[^]*go\nsay: forty-two[^]*Answer yes or no/;

const resultsOf = async (messageId: string) => {
  const turn = await fixture.ended(messageId);
  return { turn, content: turn.results.map(({ content }) => content).join("\n") };
};
/** Number of model calls in a session's turns, including those of sampling requests. */
const modelCalls = async (sessionId: string) => {
  const { rows } = await fixture.bus.request(store.usageReport, { sinceDay: "2026-01-01", sessionId });
  return rows.reduce((sum, { calls }) => sum + calls, 0);
};
const askedIn = (turnId: string) =>
  fixture.events.filter((event) => event.type === "question.asked" && event.turnId === turnId).length;

describe("sampling in a job", () => {
  test("returns an answer when the owner approves in the chat that the job delivers to", async () => {
    const from = sentSoFar();
    const due = await job(sample("asking"), { schedule: "at +1s" });
    await seen(mayAnswer, from);
    telegram.say("yes", { from: 1 });
    const [run] = await finishedRuns(fixture.client, due.id);
    assert.equal(run?.turn?.text, "the job is done");
    await seen(/^the job is done$/, from);
    const log = await fixture.log((await fixture.session(`cron:${due.id}`)).sessionId);
    const results = log.flatMap(({ parts }) => parts.filter((part) => part.type === "tool_result"));
    assert.match(results[0]?.content ?? "", /^1\. forty-two \(endTurn\)[^]*rehearsal answered\./m);
    assert.equal(telegram.sent.slice(from).length, 2, "the yes has begun no turn");
  });

  test("returns an answer when the job runs in the owner's main session", async () => {
    const from = sentSoFar();
    const messageId = await runJob(fixture.client, (await job(sample("asking"), { target: "main" })).id);
    await seen(mayAnswer, from);
    telegram.say("yes", { from: 1 });
    const { turn, content } = await resultsOf(messageId);
    assert.equal(turn.sessionId, (await fixture.session("main")).sessionId);
    assert.match(content, /^1\. forty-two/m);
  });

  test("returns none and reports the reason to server and model when the owner denies", async () => {
    const from = sentSoFar();
    const messageId = await runJob(fixture.client, (await job(sample("asking", { times: 2 }))).id);
    await seen(mayAnswer, from);
    telegram.say("no", { from: 1 });
    const { turn, content } = await resultsOf(messageId);
    assert.equal(turn.text, "the job is done");
    assert.match(
      content,
      /1\. error: [^]*the user declined[^]*2\. error: [^]*no consent to sampling: the user declined/,
    );
    assert.match(
      content,
      /\[The server requested an answer from a model\. The request was refused: no consent to sampling: the user declined\.\]/,
    );
    assert.equal(await modelCalls(turn.sessionId), 2);
  });

  test("returns none when nobody answers in time; a later answer is an ordinary message", async () => {
    const from = sentSoFar();
    const messageId = await runJob(fixture.client, (await job(sample("hasty"))).id);
    await seen(mayAnswer, from);
    const { content } = await resultsOf(messageId);
    assert.match(content, /1\. error: [^]*no consent to sampling: nobody answered in time/);
    telegram.say("say: good evening", { from: 1 });
    await seen(/^good evening$/, from);
  });

  test("is declined immediately when the job delivers to nobody", async () => {
    const from = sentSoFar();
    const messageId = await runJob(fixture.client, (await job(sample("asking"), { deliverTo: "nowhere" })).id);
    const { turn, content } = await resultsOf(messageId);
    assert.match(content, /1\. error: [^]*declined: no person can answer, the job has no delivery address/);
    assert.deepEqual([askedIn(turn.turnId), sentSoFar()], [0, from]);
  });

  test("ignores an approval from a person who is not an owner when the job delivers to a group", async () => {
    const from = sentSoFar();
    const messageId = await runJob(fixture.client, (await job(sample("asking"), { deliverTo: chat("-100") })).id);
    await seen(mayAnswer, from, -100);
    telegram.say("@parley_bot say: not mine to allow", { from: 2, chat: -100 });
    await seen(/not mine to allow/, from, -100);
    telegram.say("@parley_bot yes", { from: 1, chat: -100 });
    assert.match((await resultsOf(messageId)).content, /^1\. forty-two/m);
  });

  test("returns one answer when the owner approves twice; the second reply is a message", async () => {
    const from = sentSoFar();
    const messageId = await runJob(fixture.client, (await job(sample("asking", { times: 2 }))).id);
    await seen(mayAnswer, from);
    telegram.say("yes", { from: 1 });
    telegram.say("yes", { from: 1 });
    const { turn, content } = await resultsOf(messageId);
    assert.match(content, /^1\. forty-two \(endTurn\)\n2\. forty-two \(endTurn\)/m);
    assert.equal(askedIn(turn.turnId), 1);
    // The rehearsal model echoes text that contains no instructions.
    await seen(/yes/, from + 1);
  });
});

describe("elicitation in a job", () => {
  test("is answered field by field in the chat that the job delivers to", async () => {
    const from = sentSoFar();
    const messageId = await runJob(fixture.client, (await job(elicit("form"))).id);
    await seen(/The MCP server "form"[^]*1 of 13/, from);
    telegram.say("Ada Lovelace", { from: 1 });
    await seen(/^2 of 13/, from);
    telegram.say("done", { from: 1 });
    assert.match((await resultsOf(messageId)).content, /Name: Ada Lovelace[^]*the user answered name: "Ada Lovelace"/);
  });

  test("reports the timeout to server and model when nobody answers", async () => {
    const from = sentSoFar();
    // A chat of its own: the earlier messages have used up the rate of the owner's, and the question waits for one second only.
    const messageId = await runJob(fixture.client, (await job(elicit("brief"), { deliverTo: chat("2") })).id);
    await seen(/1 of 13/, from, 2);
    assert.match((await resultsOf(messageId)).content, /Outcome: nobody answered in time\./);
  });

  test("is declined immediately when the job delivers to nobody", async () => {
    const messageId = await runJob(fixture.client, (await job(elicit("form"), { deliverTo: "nowhere" })).id);
    assert.match(
      (await resultsOf(messageId)).content,
      /declined: no person can answer, the job has no delivery address/,
    );
  });
});

// design: 002.32b
test("declines requests immediately in a heartbeat and leaves the owner's session free", async () => {
  telegram.say("say: here I am", { from: 1 });
  await seen(/^here I am$/, 0);
  const from = sentSoFar();
  for (const [asks, told] of [
    [
      sample("asking"),
      /no consent to sampling: declined: no person can answer, no person waits for this turn \(origin: heartbeat\)/,
    ],
    [elicit("form"), /declined: no person can answer, no person waits for this turn \(origin: heartbeat\)/],
    [
      'tool: ask_user {"question":"Tea?"}\nthen\nsay: HEARTBEAT_OK',
      /^No person can answer: no person waits for this turn/,
    ],
  ] as const) {
    await writeDocument(fixture.client, {
      path: "HEARTBEAT.md",
      content: `${asks.replace("the job is done", "HEARTBEAT_OK")}\n`,
    });
    const { turn, content } = await resultsOf(await beatThatFires(fixture.client));
    assert.match(content, told);
    assert.deepEqual([turn.text, askedIn(turn.turnId), sentSoFar()], ["HEARTBEAT_OK", 0, from]);
  }
});

// design: 002.32, 002.32b
test("delivers the agent's own question to the job's address, and declines it without one", async () => {
  const from = sentSoFar();
  const prompt = 'tool: ask_user {"question":"Tea or coffee?","options":["tea","coffee"]}\nthen\nsay: the job is done';
  const messageId = await runJob(fixture.client, (await job(prompt)).id);
  await seen(/^Tea or coffee\?/, from);
  telegram.say("2", { from: 1 });
  assert.equal((await resultsOf(messageId)).content, "The person answered: coffee");
  const silent = await runJob(fixture.client, (await job(prompt, { deliverTo: "nowhere" })).id);
  assert.match((await resultsOf(silent)).content, /^No person can answer: the job has no delivery address\./);
});

describe("sampling when a process dies after the approval", () => {
  const conversationGoesOn = async () => {
    const from = sentSoFar();
    telegram.say("say: still here", { from: 1 });
    await seen(/^still here$/, from);
  };

  test("is continued by the next leader when the leader dies before the model call", async () => {
    const from = sentSoFar();
    const messageId = await runJob(fixture.client, (await job(sample("asking"))).id);
    await seen(mayAnswer, from);
    await Promise.all([1, 2].map((replica) => fixture.cluster.kill("agent-core", replica, "SIGKILL")));
    telegram.say("yes", { from: 1 });
    const { turn, content } = await resultsOf(messageId);
    assert.match(content, /^1\. forty-two/m);
    assert.deepEqual([turn.text, askedIn(turn.turnId), await modelCalls(turn.sessionId)], ["the job is done", 1, 3]);
  });

  test("fails without a repeated request when the leader dies during the model call", async () => {
    const from = sentSoFar();
    const messageId = await runJob(fixture.client, (await job(sample("asking"))).id);
    await seen(mayAnswer, from);
    await fixture.cluster.fault("agent.before_sample", "kill");
    telegram.say("yes", { from: 1 });
    const { turn, content } = await resultsOf(messageId);
    assert.deepEqual(await fixture.cluster.armed(), []);
    assert.match(content, /1\. error: [^]*the (leader changed during the model call|agent was restarted)/);
    assert.deepEqual([turn.text, await modelCalls(turn.sessionId)], ["the job is done", 2]);
  });

  test("ends with unknown outcome, no cost and a used approval when the tool-runner dies", async () => {
    const from = sentSoFar();
    const messageId = await runJob(fixture.client, (await job(sample("asking"))).id);
    await seen(mayAnswer, from);
    await fixture.cluster.fault("tool.before_sample", "kill");
    telegram.say("yes", { from: 1 });
    const { turn, content } = await resultsOf(messageId);
    assert.deepEqual(await fixture.cluster.armed(), []);
    assert.match(content, /^Outcome unknown/);
    assert.deepEqual([turn.text, askedIn(turn.turnId), await modelCalls(turn.sessionId)], ["the job is done", 1, 2]);
    await conversationGoesOn();
  });
});

// design: 004.26b
test("runs a user's reminder in their own chat and workspace", async () => {
  const before = sentSoFar();
  const prompt = 'tool: read {"path":"reminder.txt"}\nthen\nsay: the tea is ready';
  const reminder = { action: "add", name: "tea of a user", at: "+1s", message: prompt };
  const write = 'tool: write {"path":"reminder.txt","content":"of the user"}';
  telegram.say(`${write}\ntool: cron ${JSON.stringify(reminder)}\nthen\nsay: noted`, { from: 2 });
  await seen(/^the tea is ready$/, before, 2);
  const { sessionId } = await fixture.session("telegram:main:2");
  const messages = await fixture.log(sessionId);
  const fired = messages.find(({ from }) => from?.origin === "cron");
  assert.deepEqual([fired?.from?.role, fired?.from?.contact.id], ["user", "2"]);
  const results = messages.filter(({ turnId, role }) => turnId === fired?.turnId && role === "tool");
  assert.match(JSON.stringify(results), /of the user/);
});
