// The preset `delegate`, section by section of its design: an agent that sends messages by a tool and delegates work.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { store } from "@parley/contracts";
import {
  callItem,
  Cleanup,
  messageItem,
  reasoningItem,
  startResponsesServer,
  startTelegramPeer,
  type ResponsesServer,
  type TelegramPeer,
} from "@parley/testing";
import { rolesOf, spawning, startClusterFixture, textsOf, waitingFor, type ClusterFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: ClusterFixture;
let telegram: TelegramPeer;
let responses: ResponsesServer;

before(async () => {
  telegram = await startTelegramPeer();
  cleanup.add(() => telegram.close());
  responses = await startResponsesServer();
  cleanup.add(async () => responses.stop());
  fixture = await startClusterFixture(cleanup, "delegate", {
    processes: [],
    model: true,
    settings: `
[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "${telegram.url}"
owners = ["42"]
[tools.exec]
background_after_seconds = 1
[llm.gpt]
api = "openai_responses"
base_url = "${responses.url}"
model = "gpt-5"
[profiles.talker]
tools = ["message"]
`,
    secrets: { PARLEY_CHANNEL_TELEGRAM: telegram.token },
  });
});
after(() => cleanup[Symbol.asyncDispose]());

/** One agent delegates `task` to the next. */
const delegating = (task: string, say: string, agent = "worker") =>
  `${spawning("delegate", { agent, task })}\nthen\nsay: ${say}`;

describe("loop", () => {
  test("keeps a separate history for each conversation", async () => {
    const one = await fixture.turn("say: one", "a");
    const two = await fixture.turn("say: two", "b");
    assert.notEqual(one.sessionId, two.sessionId);
    assert.ok(!textsOf(await fixture.log(two.sessionId)).includes("one"));
  });

  // design: 001.3, 001.11
  test("instructs the model to send messages only by the tool message", async () => {
    await fixture.turn("say: hello");
    const { system, tools } = fixture.lastRequest();
    assert.match(system, /only what you send with the tool `message`/);
    assert.ok(tools.includes("message") && tools.includes("delegate"));
    assert.deepEqual(tools, tools.toSorted(), "the list of tools is always in the same order");
  });

  // design: 000.17, 000.37, 001.3, 001.4, 001.15
  test("delivers what the tool message sends and not the text next to it", async () => {
    telegram.say('say: thinking aloud\ntool: message {"text":"working on it"}\nthen\nsay: raw ending');
    const sent = await telegram.untilSent(1);
    assert.equal(sent[0]?.text, "working on it");
    telegram.say('tool: message {"text":"second"}\nthen\nsay: raw again');
    const both = await telegram.untilSent(2);
    assert.deepEqual(
      both.map(({ text }) => text),
      ["working on it", "second"],
    );
  });

  // design: 001.29b
  test("sends the stored reasoning of a Responses model back in the next round and the next turn", async () => {
    const { sessionId } = await fixture.turn('tool: message {"text":"ready"}\nthen\nsay: ready', "gpt");
    await fixture.useModel(sessionId, "gpt");
    const thoughts = [reasoningItem("rs_1", "gAAAA-1", "list it"), reasoningItem("rs_2", "gAAAA-2")] as const;
    responses.answer(
      [thoughts[0], callItem("call_1", "ls", {})],
      [thoughts[1], callItem("call_2", "message", { text: "empty" })],
      [messageItem("told")],
      [callItem("call_3", "message", { text: "still empty" })],
      [messageItem("told again")],
    );
    const turn = await fixture.turn("what is there?", "gpt");
    assert.deepEqual([turn.exitReason, turn.modelSteps], ["end_turn", 3]);
    await fixture.turn("and now?", "gpt");
    const sent = responses.requests.map(({ input }) => input.filter(({ type }) => type === "reasoning"));
    assert.deepEqual(sent, [[], [thoughts[0]], [...thoughts], [...thoughts], [...thoughts]]);
    assert.deepEqual(responses.refusals, []);
  });

  // design: 001.20c
  test("tells a person on Telegram that their turn has failed", async () => {
    const before = telegram.sent.length;
    fixture.cluster.scripted?.failNext({ status: 400 });
    telegram.say("say: never");
    const sent = await telegram.untilSent(before + 1);
    const words = /^I could not answer: the model's provider rejected the request \(.*scripted 400.*\)\.$/;
    assert.match(sent[before]?.text ?? "", words);
  });

  // design: 001.3
  test("reminds the model once to use the tool when a turn ends without a message", async () => {
    const turn = await fixture.turn("say: nobody hears this");
    assert.equal(turn.modelSteps, 2);
    assert.ok(textsOf(turn.messages).some((text) => text.startsWith("[Nothing was said:")));
  });

  // design: 001.5
  test("does not limit the number of rounds while the model makes calls", async () => {
    const rounds = Array.from({ length: 55 }, (_, index) => `tool: read {"path":"round-${index}.txt"}`);
    const turn = await fixture.turn([...rounds, 'tool: message {"text":"all"}', "say: all"].join("\nthen\n"));
    assert.deepEqual([turn.state, turn.modelSteps], ["done", 57]);
  });

  // design: 001.8
  test("continues with an error result when a tool is unknown or fails", async () => {
    const turn = await fixture.turn(
      'tool: nothing {}\ntool: read {"path":"missing.txt"}\nthen\ntool: message {"text":"ok"}',
    );
    assert.match(turn.results[0]?.content ?? "", /^Tool not found: nothing\./);
    assert.deepEqual(
      turn.results.map(({ isError }) => isError),
      [true, true, false],
    );
    assert.equal(turn.state, "done");
  });

  // design: 001.9
  test("ends with an error and keeps the input in the history when the model fails", async () => {
    fixture.cluster.scripted?.failNext({ status: 400 });
    const failed = await fixture.turn("say: lost?", "failing");
    assert.deepEqual([failed.state, failed.exitReason], ["failed", "error"]);
    await fixture.turn('tool: message {"text":"back"}\nthen\nsay: back', "failing");
    assert.match(fixture.lastRequest().messages[0] ?? "", /lost\?/);
  });

  // design: 001.2, 001.23
  test("keeps calls and results of a turn in the history, not only the last answer", async () => {
    await fixture.turn('tool: write {"path":"h.txt","content":"x"}\nthen\ntool: message {"text":"done"}', "history");
    await fixture.turn('tool: message {"text":"more"}', "history");
    assert.match(fixture.lastRequest().messages.join("\n"), /call\(write .*result\(/s);
  });
});

// design: 001.25b
test("summarises in the background after twenty turns, and merges the summary into the next one", async () => {
  const turnIds = new Set<string>();
  const twentyTurns = async () => {
    for (let index = 0; index < 20; index += 1)
      turnIds.add((await fixture.turn(`${"word ".repeat(200)}\nsay: answer ${index}`, "long")).turnId);
  };
  const compactions = (count: number) =>
    fixture.happens((event) => {
      if (event.type !== "compacted" || !turnIds.has(event.turnId)) return false;
      return (
        fixture.events.filter((each) => each.type === "compacted" && turnIds.has(each.turnId)).indexOf(event) ===
        count - 1
      );
    });
  await twentyTurns();
  // No further message is sent.
  const first = await compactions(1);
  assert.ok(first.type === "compacted" && first.trigger === "turns" && first.summary !== undefined);
  const before = fixture.cluster.strict?.requests.length ?? 0;
  await twentyTurns();
  const second = await compactions(2);
  assert.ok(second.type === "compacted" && second.strategy === "summarize");
  const requests = (fixture.cluster.strict?.requests.slice(before) ?? []).map(({ messages }) =>
    JSON.stringify(messages),
  );
  assert.ok(requests.some((text) => /\[CONTEXT SUMMARY\].*Answer with the summary only/.test(text)));
});

/** A result of `delegate` without the line that names the sub-agent. */
function reportIn(content = ""): string {
  const [, report = "", id = ""] = /^(.*)\n\n\[sub-agent (\S+)\]$/s.exec(content) ?? [];
  assert.match(id, /^[0-9a-f-]{36}$/, content);
  return report;
}

/** The task of one of two sub-agents, each of which ends only when both are at work. */
const meet = (mine: string, theirs: string) =>
  `tool: exec ${JSON.stringify({ command: `touch ${mine}`, wait_seconds: 120 })}\nthen\n${waitingFor(theirs)}\nthen\nsay: ${mine} met ${theirs}`;

describe("parallel tools", () => {
  // design: 001.2, preset.3, 001.18e, 002.33b
  test("runs delegates of one answer in parallel and returns results in the order of the calls", async () => {
    const turn = await fixture.turn(
      [
        spawning("delegate", { agent: "worker", task: meet("left", "right") }),
        spawning("delegate", { agent: "worker", task: meet("right", "left") }),
        "then",
        'tool: message {"text":"they met"}',
      ].join("\n"),
    );
    assert.deepEqual(
      turn.results.slice(0, 2).map(({ content }) => reportIn(content)),
      ["left met right", "right met left"],
    );
  });

  // design: 001.2b
  test("runs a command and a write of the same answer in the order of the calls", async () => {
    const turn = await fixture.turn(
      'tool: exec {"command":"sleep 0.3; echo one > order.txt"}\ntool: write {"path":"order.txt","content":"two"}\nthen\ntool: read {"path":"order.txt"}\nthen\ntool: message {"text":"ok"}',
      "order",
    );
    assert.match(turn.results[2]?.content ?? "", /two/);
  });

  test("waits for a command beyond the limit for the background when a later call depends on it", async () => {
    const turn = await fixture.turn(
      'tool: exec {"command":"sleep 1.3; echo slow > slow.txt"}\ntool: exec {"command":"cat slow.txt"}\nthen\ntool: message {"text":"ok"}',
      "order",
    );
    assert.match(turn.results[1]?.content ?? "", /^slow/);
  });
});

describe("delegates", () => {
  // design: 001.34
  test("report what they send with the tool message", async () => {
    const task = 'tool: message {"text":"half way"}\nthen\nsay: done';
    const turn = await fixture.turn(
      `${spawning("delegate", { agent: "talker", task })}\nthen\ntool: message {"text":"ok"}`,
      "reports",
    );
    assert.equal(reportIn(turn.results[0]?.content), "half way\n\ndone");
  });

  test("name themselves in their report, and continue by that name", async () => {
    const first = await fixture.turn(delegating("say: one", "ok", "researcher"), "by-id");
    const [, id = ""] = /\[sub-agent (\S+)\]$/.exec(first.results[0]?.content ?? "") ?? [];
    const resume = spawning("delegate", { agent: "researcher", task: "say: two", resume: id });
    await fixture.turn(`${resume}\nthen\ntool: message {"text":"ok"}`, "by-id");
    assert.deepEqual(textsOf(await fixture.log(id)), ["say: one", "one", "say: two", "two"]);
  });

  // design: 001.35
  test("continue the session of an earlier task of the same conversation, unless it is at work", async () => {
    const first = await fixture.turn(delegating("say: one", "ok", "worker"), "continuity");
    await fixture.turn(delegating("say: two", "ok", "worker"), "continuity");
    const children = await fixture.children(first.sessionId);
    assert.equal(children.length, 1);
    assert.deepEqual(textsOf(await fixture.log(children[0]?.sessionId ?? "")), ["say: one", "one", "say: two", "two"]);
    const both = [meet("one", "two"), meet("two", "one")].map((task) =>
      spawning("delegate", { agent: "worker", task }),
    );
    await fixture.turn(`${both.join("\n")}\nthen\ntool: message {"text":"ok"}`, "continuity");
    const found = (await fixture.children(first.sessionId)).map(({ sessionId }) => sessionId);
    assert.ok(found.length === 2 && found.includes(children[0]?.sessionId ?? ""));
    const newest = found.find((id) => id !== children[0]?.sessionId) ?? "";
    await fixture.turn(delegating("say: to the newest", "ok", "worker"), "continuity");
    assert.equal(textsOf(await fixture.log(newest)).at(-1), "to the newest");
    assert.equal((await fixture.children(first.sessionId)).length, 2);
  });
});

describe("profiles and scopes", () => {
  // design: 001.12, 001.13
  test("gives a profile its own instructions and tools from the shared registry", async () => {
    const before = fixture.cluster.strict?.requests.length ?? 0;
    await fixture.turn(delegating("say: found it", "ok", "researcher"), "scope");
    const child = fixture.cluster.strict?.requests
      .slice(before)
      .find(({ system }) => system.some(({ text }) => text.includes("You research for another agent")));
    const tools = child?.tools.map(({ name }) => name) ?? [];
    assert.ok(tools.includes("read") && tools.includes("web_fetch"));
    for (const name of ["write", "exec", "message", "delegate"]) assert.ok(!tools.includes(name), name);
  });

  // design: 001.13
  test("lists the existing profiles when a profile does not exist", async () => {
    const turn = await fixture.turn(delegating("say: x", "ok", "plumber"), "profiles");
    assert.match(turn.results[0]?.content ?? "", /there is no profile "plumber"\. Available: .*researcher/);
  });
});

describe("delegation", () => {
  // design: 001.7
  test("lets a sub-agent report to its parent only", async () => {
    const task = 'tool: message {"text":"hi, people"}\nthen\nsay: the report';
    const turn = await fixture.turn(delegating(task, "ok"), "report");
    assert.equal(reportIn(turn.results[0]?.content), "the report");
    const [child] = await fixture.children(turn.sessionId);
    const log = await fixture.log(child?.sessionId ?? "");
    assert.match(
      log.flatMap(({ parts }) => parts.flatMap((part) => (part.type === "tool_result" ? [part.content] : []))).join(),
      /Tool not found: message/,
    );
  });

  // design: 001.18f
  test("runs a command of the parent without approval after the report", async () => {
    await fixture.turn(delegating('tool: write {"path":"report.txt","content":"x"}\nthen\nsay: done', "ok"), "after");
    const turn = await fixture.turn(
      'tool: exec {"command":"echo unasked"}\nthen\ntool: message {"text":"ran"}',
      "after",
    );
    assert.match(turn.results[0]?.content ?? "", /^unasked/);
  });

  // design: 001.18, 002.17
  test("creates a session for the sub-agent, linked to the parent's session", async () => {
    const turn = await fixture.turn(delegating("say: kept apart", "ok"), "apart");
    const [child] = await fixture.children(turn.sessionId);
    assert.deepEqual([child?.parentId, child?.profile], [turn.sessionId, "worker"]);
    assert.equal(rolesOf(await fixture.log(child?.sessionId ?? "")), "user assistant");
    assert.ok(!textsOf(turn.messages).includes("kept apart"));
  });

  // design: 001.19
  test("adds memory to the prompt of the top agent and not to that of a sub-agent", async () => {
    const lent = { path: "memory/lent.md", content: "- The astrolabe is lent to Wilhelmina." };
    const order = { opId: crypto.randomUUID(), ...lent, author: "owner", expectedVersion: 0 } as const;
    await fixture.bus.request(store.documentPut, order);
    const before = fixture.cluster.strict?.requests.length ?? 0;
    const question = "Where is the astrolabe?";
    await fixture.turn(question, "recalled");
    await fixture.turn(spawning("delegate", { agent: "worker", task: question }), "recalled");
    const requests = fixture.cluster.strict?.requests.slice(before) ?? [];
    const isChild = ({ system }: (typeof requests)[number]) =>
      system.some(({ text }) => text.includes("You work on one task for another agent"));
    const texts = (mine: typeof requests) => mine.map(({ messages }) => JSON.stringify(messages));
    const own = texts(requests.filter((request) => !isChild(request)));
    const child = texts(requests.filter(isChild));
    assert.match(own[0] ?? "", /\[Memory: .*lent\.md/);
    assert.equal(child.length, 1);
    assert.match(child[0] ?? "", /Where is the astrolabe/);
    assert.doesNotMatch(child[0] ?? "", /\[Memory:|lent\.md/);
  });

  // design: switch.4, 001.18d
  test("has no fourth level of agents: the third has no tool to start one", async () => {
    const fourth = delegating("say: too deep", "refused below me");
    const third = delegating(fourth, "from the second");
    const turn = await fixture.turn(delegating(delegating(third, "from the first"), "ok"), "deep");
    assert.equal(turn.state, "done");
    let sessionId = turn.sessionId;
    const results: string[] = [];
    for (let depth = 0; depth < 4; depth += 1) {
      const log = await fixture.log(sessionId);
      results.push(
        ...log.flatMap(({ parts }) => parts.flatMap((part) => (part.type === "tool_result" ? [part.content] : []))),
      );
      sessionId = (await fixture.children(sessionId))[0]?.sessionId ?? "";
      if (sessionId === "") break;
    }
    assert.equal(results.length, 4);
    assert.match(results[3] ?? "", /^Tool not found: delegate\./);
  });
});

test("publishes text, calls, results, end and errors as events of their turn", async () => {
  const turn = await fixture.turn('tool: ls {}\nthen\ntool: message {"text":"seen"}\nthen\nsay: end', "events");
  await fixture.happens((event) => event.type === "turn.finished" && event.turnId === turn.turnId);
  const types = new Set(
    fixture.events.flatMap((event) => ("turnId" in event && event.turnId === turn.turnId ? [event.type] : [])),
  );
  for (const type of ["text.delta", "tool.started", "tool.finished", "turn.finished"] as const)
    assert.ok(types.has(type), type);
});

test("sends only requests that the real API accepts", () => {
  assert.deepEqual(fixture.cluster.strict?.refusals, []);
});
