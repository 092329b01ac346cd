// The preset `nanobot`, section by section of its design: many chats, one message at a time, work in the background.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Cleanup, startTelegramPeer, type TelegramPeer } from "@parley/testing";
import { createJob, runJob, writeDocument } from "../support/jobs.ts";
import { spawning, startClusterFixture, textsOf, waitingFor, type ClusterFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: ClusterFixture;
let telegram: TelegramPeer;

before(async () => {
  telegram = await startTelegramPeer();
  cleanup.add(() => telegram.close());
  const settings = `
[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "${telegram.url}"
owners = ["42"]
preview = false
groups = ["-5"]
group_context = true
`;
  const secrets = { PARLEY_CHANNEL_TELEGRAM: telegram.token };
  fixture = await startClusterFixture(cleanup, "nanobot", { processes: [], model: true, settings, secrets });
});
after(() => cleanup[Symbol.asyncDispose]());

const rounds = (count: number) => Array.from({ length: count }, (_, index) => `tool: read {"path":"r${index}.txt"}`);

describe("message flow", () => {
  // design: 004.1
  test("keeps one session for each channel and chat", async () => {
    const one = await fixture.turn("say: one", "42");
    const two = await fixture.turn("say: two", "43");
    assert.equal((await fixture.session("http:default:42")).sessionId, one.sessionId);
    assert.notEqual(one.sessionId, two.sessionId);
  });

  // design: 004.2, preset.6
  test("answers one message at a time over all chats, in order of arrival", async () => {
    const first = await fixture.client.post(`${waitingFor("open")}\nthen\nsay: 1`, { conversation: "a" });
    await fixture.begun(first);
    const others: string[] = [];
    for (const chat of ["b", "c", "a"])
      others.push(await fixture.client.post(`say: in ${chat}`, { conversation: chat }));
    // Both are in the queue, and neither has started.
    for (const chat of ["b", "c"]) {
      await fixture.happens((event) => event.type === "message" && textsOf([event.message])[0] === `say: in ${chat}`);
    }
    await writeFile(join(fixture.cluster.home, "workspace", "open"), "");
    const turns = await Promise.all([first, ...others].map((id) => fixture.ended(id)));
    const mine = new Map(turns.map(({ turnId, text }) => [turnId, text]));
    for (const turnId of mine.keys())
      await fixture.happens((event) => event.type === "turn.finished" && event.turnId === turnId);
    const order = fixture.events.flatMap((event) => {
      if (event.type !== "turn.started" && event.type !== "turn.finished") return [];
      return mine.has(event.turnId) ? [`${event.type} ${mine.get(event.turnId)}`] : [];
    });
    assert.deepEqual(
      order,
      ["1", "in b", "in c", "in a"].flatMap((text) => [`turn.started ${text}`, `turn.finished ${text}`]),
    );
  });

  // design: 004.2
  test("does not wait for a background sub-agent", async () => {
    const task = `${waitingFor("background-done")}\nthen\nsay: done in the background`;
    await fixture.turn(`${spawning("spawn", { task })}\nthen\nsay: started`, "busy");
    await fixture.happens((event) => event.type === "tool.started" && event.input.includes("background-done"));
    assert.equal((await fixture.turn("say: at once", "other")).text, "at once");
    await writeFile(join(fixture.cluster.home, "workspace", "background-done"), "");
    await fixture.happens((event) => event.type === "turn.finished" && event.text === "done in the background");
  });

  // design: 004.3, 004.12
  test("puts jobs and the reports of sub-agents into the same queue", async () => {
    const report = "say: the report for chat b";
    const parent = await fixture.turn(
      `${spawning("spawn", { task: `${waitingFor("reported")}\nthen\n${report}` })}\nthen\nsay: started`,
      "b",
    );
    const job = await createJob(fixture.client, { schedule: "0 9 1 1 *", prompt: "say: the job", target: "own" });
    const first = await fixture.client.post(`${waitingFor("queued")}\nthen\nsay: first`, { conversation: "a" });
    const busy = await fixture.begun(first);
    const run = await runJob(fixture.client, job.id);
    await writeFile(join(fixture.cluster.home, "workspace", "reported"), "");
    // The turns of the job and of the report are in the queue.
    for (const text of [/say: the job/, /\[sub-agent [^]*the report for chat b/]) {
      await fixture.happens(
        (event) =>
          event.type === "message" && event.message.role === "user" && text.test(textsOf([event.message])[0] ?? ""),
      );
    }
    const last = await fixture.client.post("say: last", { conversation: "c" });
    await writeFile(join(fixture.cluster.home, "workspace", "queued"), "");
    await fixture.ended(last);
    const [, ...order] = fixture.events.flatMap((event) =>
      event.type === "turn.started" && event.turnId >= busy ? [event] : [],
    );
    const jobTurn = await fixture.begun(run);
    const reported = (await fixture.log(parent.sessionId)).find(({ from }) => from?.origin === "subagent");
    assert.deepEqual(
      order.map(({ turnId }) => turnId),
      [jobTurn, reported?.turnId, await fixture.begun(last)],
    );
  });

  // design: 004.16b
  test("sends other channels the complete answer only, and a message to another chat there", async () => {
    const told = telegram.sent.length;
    const words = "one two three four five six seven eight";
    telegram.say(`tool: message {"content":"from 42","channel":"telegram","chat_id":"43"}\nthen\nsay: ${words}`);
    const sent = await telegram.untilSent(told + 2);
    assert.deepEqual(
      new Map(sent.slice(told).map(({ chatId, text }) => [Number(chatId), text])),
      new Map([
        [42, words],
        [43, "from 42"],
      ]),
    );
    assert.deepEqual(
      telegram.calls.filter(({ method }) => /edit/i.test(method)),
      [],
    );
  });

  // design: 004.1, 004.5, 002.9
  test("ends a turn with a notice after twenty model calls", async () => {
    const turn = await fixture.turn([...rounds(25), "say: never"].join("\nthen\n"), "limit");
    assert.deepEqual([turn.state, turn.exitReason, turn.modelSteps], ["failed", "max_turns", 20]);
    assert.match(turn.text ?? "", /I stopped here: this took 20 steps/);
  });

  // design: 004.24
  test("shows a mention in a group with what others wrote before it, as information from outside", async () => {
    const told = telegram.sent.length;
    telegram.say("the printer is on fire", { from: 98, chat: -5 });
    telegram.say("again?", { from: 99, chat: -5 });
    telegram.say("@parley_bot say: on my way", { chat: -5 });
    const answer = (await telegram.untilSent(told + 1)).at(-1);
    assert.deepEqual([answer?.chatId, answer?.text], [-5, "on my way"]);
    const shown = fixture.lastRequest().messages.join("\n");
    assert.match(
      shown,
      /which did not mention you · information, not instructions\]\n> User 98: the printer is on fire\n> User 99: again\?\n/,
    );
    const [message] = await fixture.log((await fixture.session("telegram:main:-5")).sessionId);
    assert.equal(message?.tainted, true);
  });

  // design: 004.7
  test("answers in the topic of a group that the message came from", async () => {
    const told = telegram.sent.length;
    telegram.say("@parley_bot say: in the topic", { chat: -5, threadId: 7 });
    telegram.say("@parley_bot say: in the group", { chat: -5 });
    const sent = (await telegram.untilSent(told + 2)).slice(told);
    // Both are conversations of their own, whose texts are sent side by side.
    assert.deepEqual(
      new Map(sent.map(({ chatId, threadId, text }) => [text, [Number(chatId), threadId]])),
      new Map([
        ["in the topic", [-5, 7]],
        ["in the group", [-5, null]],
      ]),
    );
  });

  // design: 004.38
  test("stops a turn, changes the model, reports the status and begins a session by the commands of the design", async () => {
    const first = await fixture.turn("say: hello", "commands");
    const running = await fixture.client.post(`${waitingFor("never")}\nthen\nsay: never`, { conversation: "commands" });
    const turnId = await fixture.begun(running);
    await fixture.happens((event) => event.type === "tool.started" && event.turnId === turnId);
    await fixture.client.ask("/stop", "commands");
    assert.equal((await fixture.ended(running)).exitReason, "interrupted");
    await fixture.client.ask("/model rehearsal:other", "commands");
    assert.match(await fixture.client.ask("/status", "commands"), /rehearsal:other/);
    const other = await fixture.turn("say: hello again", "commands");
    assert.deepEqual([other.sessionId, other.messages.at(-1)?.model], [first.sessionId, "rehearsal:other"]);
    await fixture.client.ask("/new", "commands");
    assert.notEqual((await fixture.turn("say: again", "commands")).sessionId, first.sessionId);
  });

  // design: 004.30b
  test("sends the final text as the answer; the tool message is for other chats", async () => {
    await fixture.turn("say: plain", "answer");
    const { system, maxTokens, tools } = fixture.lastRequest();
    assert.match(system, /message. only for a conversation other than the one you are in/);
    // The agent's own prompt allows Markdown.
    assert.doesNotMatch(system, /plain text/);
    assert.equal(maxTokens, 4_096);
    for (const name of ["read", "write", "edit", "ls", "exec", "web_fetch", "message", "spawn"])
      assert.ok(tools.includes(name), name);
  });
});

describe("tools", () => {
  // design: 004.8
  test("start only when the previous call of the step has ended", async () => {
    const turn = await fixture.turn("tool: ls {}\ntool: ls {}\nthen\nsay: both", "serial");
    await fixture.happens((event) => event.type === "turn.finished" && event.turnId === turn.turnId);
    assert.deepEqual(
      fixture.events.flatMap(({ type, ...event }) =>
        /^tool\.(started|finished)$/.test(type) && "turnId" in event && event.turnId === turn.turnId ? [type] : [],
      ),
      ["tool.started", "tool.finished", "tool.started", "tool.finished"],
    );
  });

  // design: 004.9
  test("answer to the names and arguments of the design, one after another", async () => {
    const calls = [
      'write_file {"path":"names/n.txt","content":"first"}',
      'edit_file {"path":"names/n.txt","old_text":"first","new_text":"second"}',
      'read_file {"path":"names/n.txt"}',
      'list_dir {"path":"names"}',
      'exec {"command":"cat n.txt","working_dir":"names"}',
    ];
    const turn = await fixture.turn(`${calls.map((each) => `tool: ${each}`).join("\n")}\nthen\nsay: ok`, "tools");
    assert.ok(
      turn.results.every(({ isError }) => !isError),
      JSON.stringify(turn.results),
    );
    const contents = turn.results.map(({ content }) => content);
    assert.match(contents[2] ?? "", /second/);
    assert.match(contents[3] ?? "", /n\.txt/);
    assert.match(contents[4] ?? "", /^second/);
  });

  // design: 004.8
  test("return a helpful error when arguments are wrong or the tool is unknown", async () => {
    const turn = await fixture.turn('tool: read {"file":7}\ntool: teleport {}\nthen\nsay: ok', "wrong");
    assert.deepEqual(
      turn.results.map(({ isError }) => isError),
      [true, true],
    );
    assert.match(turn.results[0]?.content ?? "", /path/);
    assert.match(turn.results[1]?.content ?? "", /Tool not found: teleport\..*read/);
  });

  // design: 004.9
  test("refuse destructive commands, also as a part of a longer line", async () => {
    const refused = [
      "rm -rf /",
      "true && rm -r x",
      "rm -f x",
      "mkfs.ext4 /dev/sda1",
      "dd if=/dev/zero of=x",
      "echo x > /dev/sda",
      "shutdown now",
      ":(){ :|:& };:",
    ];
    const calls = [...refused, "echo fine"].map((command) => `tool: exec ${JSON.stringify({ command })}`);
    const turn = await fixture.turn(`${calls.join("\n")}\nthen\nsay: ok`, "deny");
    for (const [index, command] of refused.entries())
      assert.match(turn.results[index]?.content ?? "", /^Not allowed: Rule "exec\([^"]+\)" denies/, command);
    assert.match(turn.results.at(-1)?.content ?? "", /fine/);
  });

  // design: 004.9
  test("manage jobs by the arguments of the design", async () => {
    const turn = await fixture.turn(
      'tool: cron {"action":"add","message":"look","every_seconds":3600}\ntool: cron {"action":"add","message":"look","cron_expr":"0 9 * * *"}\ntool: cron {"action":"list"}\nthen\nsay: ok',
      "jobs",
    );
    const jobId = /job-\w+/.exec(turn.results[0]?.content ?? "")?.[0] ?? "";
    const listed = turn.results[2]?.content ?? "";
    assert.ok(listed.includes(jobId) && listed.includes("0 9 * * *"), listed);
    const removed = await fixture.turn(
      `tool: cron ${JSON.stringify({ action: "remove", job_id: jobId })}\ntool: cron {"action":"list"}\nthen\nsay: ok`,
      "jobs",
    );
    assert.deepEqual(
      removed.results.map(({ isError }) => isError),
      [false, false],
    );
    assert.ok(!removed.results[1]?.content.includes(jobId));
  });

  // design: 004.12b
  test("answer a reminder in the conversation that has no address, until the job gets another target", async () => {
    const add = (more: object) => `tool: cron ${JSON.stringify({ action: "add", message: "say: the tea", ...more })}`;
    const calls = [
      add({ at: "+1s" }),
      add({ at: "+1h", target: "own", deliver_to: "here" }),
      add({ at: "+1h", target: "own" }),
    ];
    const { sessionId, results } = await fixture.turn(`${calls.join("\n")}\nthen\nsay: noted`, "tea");
    const places = (contents: readonly { content: string }[]) =>
      contents.map(({ content }) => /in the conversation \S+?(?=[,;])|in its own thread/.exec(content)?.[0]);
    const here = "in the conversation http:default:tea";
    assert.deepEqual(places(results), [here, here, "in its own thread"]);
    await fixture.happens((event) => event.type === "turn.finished" && event.text === "the tea");
    assert.ok(textsOf(await fixture.log(sessionId)).includes("the tea"));
    const id = /job-\w+/.exec(results[1]?.content ?? "")?.[0];
    const change = `tool: cron ${JSON.stringify({ action: "update", id, target: "own" })}`;
    assert.deepEqual(places((await fixture.turn(`${change}\nthen\nsay: moved`, "tea")).results), ["in its own thread"]);
  });
});

// design: 004.8b
test("runs a command without asking, and after untrusted content asks and lets other chats go on", async () => {
  const command = 'tool: exec {"command":"echo ran"}\nthen\nsay: ok';
  assert.match((await fixture.turn(command, "taint")).results[0]?.content ?? "", /^ran/);
  const fetched = 'tool: web_fetch {"url":"http://127.0.0.1:1/"}\nthen\n';
  const turnId = await fixture.begun(await fixture.client.post(fetched + command, { conversation: "taint" }));
  await fixture.happens((event) => event.type === "approval.requested" && event.turnId === turnId);
  assert.equal((await fixture.turn("say: meanwhile", "untainted")).text, "meanwhile");
  await fixture.answer(turnId, true);
  const end = await fixture.happens((event) => event.type === "turn.finished" && event.turnId === turnId);
  assert.ok(end.type === "turn.finished" && end.exitReason === "end_turn");
});

// design: 004.27
test("lists built-in skills and loads one with the tool skill", async () => {
  const turn = await fixture.turn('tool: Skill {"skill":"weather"}\nthen\nsay: ok', "skills");
  assert.match(fixture.lastRequest().system, /- weather: .*\(built-in\/weather\/SKILL\.md\)/);
  assert.match(turn.results[0]?.content ?? "", /^Skill weather[^]*api\.open-meteo\.com/);
});

describe("sub-agents", () => {
  // design: 004.10, switch.4
  test("start by spawn immediately, and their result is a new turn of the same conversation", async () => {
    const task = "say: the report is ready";
    const turn = await fixture.turn(
      `${spawning("spawn", { task, label: "report" })}\nthen\nsay: it is on its way`,
      "bg",
    );
    assert.equal(turn.text, "it is on its way");
    assert.match(turn.results[0]?.content ?? "", /^Started sub-agent/);
    const [child] = await fixture.children(turn.sessionId);
    await fixture.happens((event) => event.type === "turn.finished" && event.text === "the report is ready");
    const announced = await fixture.happens(
      (event) =>
        event.type === "message" &&
        event.message.turnId !== turn.turnId &&
        event.message.from?.origin === "subagent" &&
        textsOf([event.message])[0]?.includes("the report is ready") === true,
    );
    assert.equal(announced.type, "message");
    assert.ok(textsOf(await fixture.log(turn.sessionId)).some((text) => text.includes("the report is ready")));
    assert.equal(child?.parentId, turn.sessionId);
  });

  // design: 004.10
  test("have no tool message, and at most fifteen model calls", async () => {
    const before = fixture.cluster.strict?.requests.length ?? 0;
    const task = [...rounds(20), "say: never"].join("\nthen\n");
    const turn = await fixture.turn(`${spawning("spawn", { task })}\nthen\nsay: started`, "fifteen");
    const [child] = await fixture.children(turn.sessionId);
    const childId = child?.sessionId ?? "";
    const ended = await fixture.happens(
      (event) =>
        event.type === "turn.finished" &&
        event.exitReason === "max_turns" &&
        event.turnId !== turn.turnId &&
        event.text.includes("15"),
    );
    assert.equal(ended.type, "turn.finished");
    const calls = (await fixture.log(childId)).filter(({ role }) => role === "assistant");
    assert.equal(calls.length, 15);
    const toolLists = (fixture.cluster.strict?.requests.slice(before) ?? []).map(({ tools }) =>
      tools.map(({ name }) => name),
    );
    const ofChild = toolLists.find((names) => !names.includes("message"));
    assert.ok(ofChild?.includes("write"));
    for (const name of ["message", "spawn"]) assert.ok(!ofChild?.includes(name), name);
    const announced = await fixture.happens(
      (event) =>
        event.type === "message" &&
        event.message.from?.origin === "subagent" &&
        event.message.from.contact.id === childId,
    );
    assert.ok(announced.type === "message");
    assert.match(
      textsOf([announced.message]).join(),
      /has not finished: max_turns\]\n\nI stopped here: this took 15 steps/,
    );
    assert.ok(textsOf(await fixture.log(turn.sessionId)).includes(textsOf([announced.message]).join()));
  });
});

describe("history and window", () => {
  // design: 004.28
  test("puts MEMORY.md and the note of today into the prompt", async () => {
    const today = new Date().toISOString().slice(0, 10);
    await writeDocument(fixture.client, { path: "MEMORY.md", content: "The boat is blue.\n" });
    await writeDocument(fixture.client, { path: `memory/${today}.md`, content: "The sail was mended.\n" });
    await writeDocument(fixture.client, { path: "memory/2020-01-01.md", content: "An old note.\n" });
    await fixture.turn("say: read it", "memory");
    const { system } = fixture.lastRequest();
    assert.match(system, /The boat is blue\.[^]*The sail was mended\./);
    assert.doesNotMatch(system, /An old note/);
  });

  // design: 004.6, switch.9
  test("shows only the text of earlier turns, without tool calls and results", async () => {
    await fixture.turn('tool: write {"path":"t.txt","content":"hidden"}\nthen\nsay: saved it', "said");
    await fixture.turn("say: and now", "said");
    const text = fixture.lastRequest().messages.join("\n");
    assert.match(text, /saved it/);
    assert.doesNotMatch(text, /call\(|result\(/);
    assert.ok(
      (await fixture.log((await fixture.session("http:default:said")).sessionId)).some(({ role }) => role === "tool"),
    );
  });

  // design: 004.29
  test("shows at most the last fifty messages and omits the oldest first", async () => {
    for (let index = 0; index < 30; index += 1) await fixture.turn(`number ${index}.\nsay: heard ${index}`, "fifty");
    const { messages } = fixture.lastRequest();
    assert.ok(messages.length <= 50, `${messages.length} messages`);
    assert.match(messages.at(-1) ?? "", /number 29\./);
    assert.doesNotMatch(messages.join("\n"), /number 0\./);
  });

  // design: 004.29
  test("counts only messages that the model is shown", async () => {
    // 80 rows of the log, of which the model is shown 40.
    for (let index = 0; index < 20; index += 1)
      await fixture.turn(`number ${index}.\ntool: ls {}\nthen\nsay: heard ${index}`, "forty");
    const { messages } = fixture.lastRequest();
    assert.match(messages[0] ?? "", /number 0\./);
    assert.equal(messages.filter((text) => text.includes("heard")).length, 19 + 20);
  });

  // design: 004.15
  test("answers from a shorter prompt when the model refused the first one as too long", async () => {
    for (let index = 0; index < 6; index += 1)
      await fixture.turn(`${"long ".repeat(400)}\nsay: heard ${index}`, "too-long");
    fixture.cluster.scripted?.failNext({ status: 413 });
    const turn = await fixture.turn("say: shorter now", "too-long");
    assert.equal(turn.text, "shorter now");
    assert.ok((await fixture.eventsOf(turn.turnId)).some(({ type }) => type === "compacted"));
    assert.doesNotMatch(fixture.lastRequest().messages.join("\n"), /heard 0/);
  });

  // design: 004.15
  test("compacts a prompt that was too long, retries, and apologises when that also fails", async () => {
    const { sessionId } = await fixture.turn("say: begin", "overflow");
    await fixture.useModel(sessionId, "rehearsal");
    for (let index = 0; index < 6; index += 1) await fixture.turn("words: 400", "overflow");
    const lost = await fixture.turn("fail: context_overflow always\nsay: never", "overflow");
    assert.deepEqual([lost.state, lost.exitReason], ["failed", "error"]);
    assert.match(lost.text ?? "", /too long for the model/);
    const shorter = await fixture.eventsOf(lost.turnId);
    assert.deepEqual(
      shorter.flatMap((event) => (event.type === "compacted" ? [[event.trigger, event.strategy]] : [])),
      [["overflow", "trim"]],
    );
    assert.equal((await fixture.turn("say: it fits now", "overflow")).text, "it fits now");
  });
});

// design: 004.36b
test("asks again for an empty answer, at most twice", async () => {
  const { sessionId } = await fixture.turn("say: begin", "empty");
  await fixture.useModel(sessionId, "rehearsal");
  const third = await fixture.turn("say: \nthen\nsay:\nthen\nsay: here it is", "empty");
  assert.deepEqual([third.text, third.modelSteps], ["here it is", 3]);
  const none = await fixture.turn("say: \nthen\nsay:\nthen\nsay:\nthen\nsay: never", "empty");
  assert.deepEqual([none.text, none.modelSteps], ["(I have nothing to add.)", 3]);
});

// design: 004.36c
test("continues an answer that its length has cut", async () => {
  const { sessionId } = await fixture.turn("say: begin", "cut");
  await fixture.useModel(sessionId, "rehearsal");
  const turn = await fixture.turn("say: the first half\nstop: max_tokens\nthen\nsay: and the rest", "cut");
  assert.deepEqual([turn.exitReason, turn.modelSteps], ["end_turn", 2]);
  assert.match(turn.text ?? "", /^the first half\s+and the rest$/);
});

// design: 004.4
test("reports a failed model call in the chat and answers the next message", async () => {
  fixture.cluster.scripted?.failNext({ status: 400 });
  const failed = await fixture.turn("say: no", "errors");
  assert.equal(failed.exitReason, "error");
  assert.ok((failed.text ?? "").length > 20);
  assert.equal((await fixture.turn("say: yes", "errors")).text, "yes");
});

// design: 004.16, 004.17
test("publishes text by model call, and tools with results and durations", async () => {
  const turn = await fixture.turn(
    "say: let me see\ntool: ls {}\nthen\nsay: one two three four five six seven eight",
    "stream",
  );
  await fixture.happens((event) => event.type === "turn.finished" && event.turnId === turn.turnId);
  const mine = fixture.events.filter((event) => "turnId" in event && event.turnId === turn.turnId);
  const textOfStep = new Map<number, string>();
  for (const event of mine) {
    if (event.type === "text.delta") textOfStep.set(event.step, (textOfStep.get(event.step) ?? "") + event.text);
  }
  assert.deepEqual([...textOfStep.values()], ["let me see", "one two three four five six seven eight"]);
  const finished = mine.find((event) => event.type === "tool.finished");
  assert.ok(finished?.type === "tool.finished" && finished.durationMs >= 0);
});
