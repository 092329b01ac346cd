// The preset `singleton`, section by section of its design: one agent, one session, one input at a time.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { store, type SessionEvent } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { pollUntil } from "@parley/testing/until";
import { rolesOf, startClusterFixture, textsOf, waitingFor, type ClusterFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: ClusterFixture;

before(async () => {
  fixture = await startClusterFixture(cleanup, "singleton", { processes: [], model: true });
});
after(() => cleanup[Symbol.asyncDispose]());

describe("1 one agent", () => {
  // design: 000.1, preset.1
  test("handles input of all conversations in one session", async () => {
    const front = await fixture.turn("say: hello front", "front");
    const phone = await fixture.turn("say: hello phone", "phone");
    assert.equal(front.sessionId, phone.sessionId);
    assert.equal((await fixture.session("main")).sessionId, front.sessionId);
    const { messages } = fixture.lastRequest();
    assert.match(
      messages.join("\n"),
      /http:default:front[\s\S]*hello front[\s\S]*http:default:phone[\s\S]*hello phone/,
    );
  });

  // design: 000.1b
  test("queues input during a turn, in order, as one turn each", async () => {
    const first = await fixture.client.post(`${waitingFor("go")}\nthen\nsay: first`, { conversation: "front" });
    await fixture.happens((event) => event.type === "tool.started" && event.tool === "exec");
    const second = await fixture.client.post("say: second", { conversation: "phone" });
    const third = await fixture.client.post("say: third", { conversation: "front" });
    assert.deepEqual([await stateOf(second), await stateOf(third)], ["queued", "queued"]);
    await writeFile(join(fixture.cluster.home, "workspace", "go"), "");
    const turns = await Promise.all([first, second, third].map((id) => fixture.ended(id)));
    assert.deepEqual(
      turns.map(({ text }) => text),
      ["first", "second", "third"],
    );
    const ends = turns.map(({ startedAt, finishedAt }) => [startedAt, finishedAt ?? ""] as const);
    assert.ok((ends[0]?.[1] ?? "") <= (ends[1]?.[0] ?? ""), "the second began before the first had ended");
    assert.ok((ends[1]?.[1] ?? "") <= (ends[2]?.[0] ?? ""), "the third began before the second had ended");
  });
});

async function stateOf(messageId: string): Promise<string> {
  return (await fixture.client.messageState(messageId)).state;
}

describe("2 main loop", () => {
  // design: 000.4
  test("calls the model with the tool results until an answer has no calls", async () => {
    const turn = await fixture.turn(
      'tool: write {"path":"loop.txt","content":"one"}\nthen\ntool: read {"path":"loop.txt"}\nthen\nsay: it says one',
    );
    assert.deepEqual([turn.state, turn.exitReason, turn.text, turn.modelSteps], ["done", "end_turn", "it says one", 3]);
    assert.equal(rolesOf(turn.messages), "user assistant tool assistant tool assistant");
    assert.match(turn.results[1]?.content ?? "", /one/);
  });

  test("does not limit the number of rounds while the model makes calls", async () => {
    const rounds = Array.from({ length: 60 }, (_, index) => `tool: read {"path":"round-${index}.txt"}`);
    const turn = await fixture.turn([...rounds, "say: all sixty"].join("\nthen\n"));
    assert.deepEqual([turn.text, turn.modelSteps], ["all sixty", 61]);
  });

  // design: 000.5, 000.8b, 001.26b
  test("keeps the text that was streamed before a stop, with a cancelled end", async () => {
    const { sessionId } = await fixture.session("main");
    await fixture.useModel(sessionId, "rehearsal");
    const message = await fixture.client.post("wait: 20\nwords: 5000");
    const turnId = await fixture.begun(message);
    await fixture.happens((event) => event.type === "text.delta" && event.turnId === turnId);
    await fixture.stop(sessionId);
    const turn = await fixture.ended(message);
    await fixture.useModel(sessionId, null);
    assert.deepEqual([turn.state, turn.exitReason], ["cancelled", "interrupted"]);
    const [text, finish] = turn.messages.at(-1)?.parts ?? [];
    assert.match(text?.type === "text" ? text.text : "", /^word1\b/);
    assert.equal(finish?.type === "finish" && finish.reason, "cancelled");
  });
});

// design: 000.5
test("keeps the text that was streamed before the model's stream failed", async () => {
  const release = fixture.cluster.strict?.holdNext();
  const message = await fixture.client.post("say: shown before the failure, and this was not shown any more");
  const turnId = await fixture.begun(message);
  await fixture.happens((event) => event.type === "text.delta" && event.turnId === turnId);
  release?.("breaks");
  const turn = await fixture.ended(message);
  assert.deepEqual([turn.state, turn.exitReason, turn.modelSteps], ["failed", "error", 0]);
  assert.equal(rolesOf(turn.messages), "user assistant");
  const [kept = ""] = textsOf(turn.messages.slice(-1));
  assert.ok(kept.length > 0 && "shown before the failure".startsWith(kept), kept);
});

describe("3 tool calls", () => {
  // design: 000.7
  test("run sequentially: a later call sees the effect of an earlier one", async () => {
    const turn = await fixture.turn(
      'tool: write {"path":"order.txt","content":"written first"}\ntool: read {"path":"order.txt"}\ntool: exec {"command":"cat order.txt && rm order.txt"}\ntool: read {"path":"order.txt"}\nthen\nsay: done',
    );
    const contents = turn.results.map(({ content }) => content);
    assert.match(contents[1] ?? "", /written first/);
    assert.match(contents[2] ?? "", /written first/);
    assert.equal(turn.results[3]?.isError, true);
  });

  // design: 000.7
  test("start only when the previous call of the step has ended", async () => {
    const turn = await fixture.turn("tool: ls {}\ntool: ls {}\nthen\nsay: both");
    await fixture.happens((event) => event.type === "turn.finished" && event.turnId === turn.turnId);
    assert.deepEqual(
      fixture.events.flatMap(({ type, ...event }) =>
        /^tool\.(started|finished)$/.test(type) && "turnId" in event && event.turnId === turn.turnId ? [type] : [],
      ),
      ["tool.started", "tool.finished", "tool.started", "tool.finished"],
    );
  });

  // design: 000.6c
  test("are shown while the model writes their arguments", async () => {
    const turn = await fixture.turn(
      'tool: write {"path":"streamed.txt","content":"piece by piece"}\nthen\nsay: written',
    );
    await fixture.happens((event) => event.type === "turn.finished" && event.turnId === turn.turnId);
    const events = fixture.events.filter((event) => "turnId" in event && event.turnId === turn.turnId);
    const pieces = events.flatMap((event) => (event.type === "tool.input" ? [event.text] : []));
    assert.deepEqual(JSON.parse(pieces.join("")), { path: "streamed.txt", content: "piece by piece" });
    const types = events.map(({ type }) => type);
    const isCall = (event: SessionEvent) =>
      event.type === "message" &&
      event.message.turnId === turn.turnId &&
      event.message.parts.some(({ type }) => type === "tool_call");
    const committed = fixture.events.findIndex(isCall);
    const lastPiece = fixture.events.findLastIndex(
      (event) => event.type === "tool.input" && event.turnId === turn.turnId,
    );
    assert.ok(pieces.length > 1, "more than one piece");
    assert.ok(lastPiece >= 0 && lastPiece < committed, "the pieces come before the message with the call");
    assert.ok(types.indexOf("tool.input") < types.indexOf("tool.started"), types.join(" "));
  });

  // design: 000.7b
  test("return an error that names an unknown tool, and one message for all results of a step", async () => {
    const turn = await fixture.turn('tool: fly {"to":"moon"}\ntool: ls {}\nthen\nsay: grounded');
    assert.equal(rolesOf(turn.messages), "user assistant tool assistant");
    assert.equal(turn.results.length, 2);
    assert.match(turn.results[0]?.content ?? "", /^Tool not found: fly\./);
    assert.deepEqual([turn.results[0]?.isError, turn.results[1]?.isError], [true, false]);
  });

  // design: 000.8, 000.8d, 000.4
  test("have one result each when a person stops the turn, also those that did not run", async () => {
    const message = await fixture.client.post(
      'tool: exec {"command":"echo so far; echo begun > begun.txt; sleep 300"}\ntool: write {"path":"never.txt","content":"x"}\nthen\nsay: never',
    );
    await pollUntil(() => existsSync(join(fixture.cluster.home, "workspace", "begun.txt")), "the start of the command");
    await fixture.stop((await fixture.session("main")).sessionId);
    const turn = await fixture.ended(message);
    assert.deepEqual([turn.state, turn.exitReason], ["cancelled", "interrupted"]);
    assert.deepEqual(
      turn.results.map(({ isError }) => isError),
      [true, true],
    );
    assert.match(turn.results[0]?.content ?? "", /^Cancelled while it ran\. Its output:\nso far\n/);
    assert.equal(turn.results[1]?.content, "Cancelled");
    const reasons = turn.messages.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === "finish" ? [part.reason] : [])),
    );
    assert.deepEqual(reasons, ["tool_use"], "the reply was committed before its tools ran");
    const read = await fixture.turn('tool: read {"path":"never.txt"}\nthen\nsay: it is not there');
    assert.equal(read.results[0]?.isError, true);
  });
});

describe("3 tools", () => {
  // design: 000.45, 000.20
  test("are the twenty of the design, and the two for files of messages", async () => {
    await fixture.turn("say: which tools");
    const twenty =
      "agents_list apply_patch cron edit exec glob grep ls memory_get memory_search message process read sessions_history " +
      "sessions_list sessions_send sessions_spawn sessions_status subagents write";
    assert.deepEqual(fixture.lastRequest().tools, [...twenty.split(" "), "attach", "save_attachment"].sort());
  });
});

describe("4 sub-agents", () => {
  // design: 000.13, 000.13c
  test("have the six read-only tools and a session; their last text is the result", async () => {
    await fixture.turn('tool: write {"path":"facts.txt","content":"the answer is 42"}\nthen\nsay: ok');
    for (const [path, content] of [
      ["AGENTS.md", "Measure twice."],
      ["SOUL.md", "You are cheerful."],
      ["MEMORY.md", "The tea is in the cellar."],
    ] as const) {
      const order = { opId: randomUUID(), path, content, author: "owner", expectedVersion: 0 } as const;
      await fixture.bus.request(store.documentPut, order);
    }
    const before = fixture.cluster.strict?.requests.length ?? 0;
    const prompt = 'tool: read {\\"path\\":\\"facts.txt\\"}\\nthen\\nsay: it is 42';
    const turn = await fixture.turn(`tool: sessions_spawn {"prompt":"${prompt}"}\nthen\nsay: the child says 42`);
    assert.match(turn.results[0]?.content ?? "", /^it is 42\n\n\[sub-agent /);
    const requests = fixture.cluster.strict?.requests.slice(before) ?? [];
    const [own, child] = requests;
    const childTools = child?.tools.map(({ name }) => name) ?? [];
    const six = new Set(["glob", "grep", "ls", "memory_get", "memory_search", "read"]);
    assert.deepEqual(
      childTools.filter((name) => !six.has(name)),
      [],
    );
    for (const name of six) assert.ok(childTools.includes(name), name);
    assert.ok(own?.tools.some(({ name }) => name === "sessions_spawn"));
    const shown = child?.system.map(({ text }) => text).join("\n") ?? "";
    assert.match(shown, /^You are a sub-agent[^]*Measure twice\./);
    assert.doesNotMatch(shown, /cheerful|cellar/);
    const [session] = await fixture.children(turn.sessionId);
    assert.equal(session?.parentId, turn.sessionId);
    assert.equal(rolesOf(await fixture.log(session?.sessionId ?? "")), "user assistant tool assistant");
  });

  // design: 000.13d
  test("leave the thread untainted: a later command runs without approval", async () => {
    await fixture.turn('tool: sessions_spawn {"prompt":"tool: ls {}\\nthen\\nsay: seen"}\nthen\nsay: ok');
    const turn = await fixture.turn('tool: exec {"command":"echo unasked"}\nthen\nsay: ran');
    assert.match(turn.results[0]?.content ?? "", /^unasked/);
  });

  // design: 000.13b
  test("cannot start other sub-agents", async () => {
    const inner = 'tool: sessions_spawn {\\"prompt\\":\\"say: deeper\\"}\\nthen\\nsay: I could not';
    const turn = await fixture.turn(`tool: sessions_spawn {"prompt":"${inner}"}\nthen\nsay: done`);
    assert.match(turn.results[0]?.content ?? "", /^I could not\n\n\[sub-agent /);
    const [child] = await fixture.children(turn.sessionId);
    const log = await fixture.log(child?.sessionId ?? "");
    const [refused] = log.flatMap(({ parts }) => parts.filter((part) => part.type === "tool_result"));
    assert.match(refused?.content ?? "", /^Tool not found: sessions_spawn\./);
    assert.deepEqual(await fixture.children(child?.sessionId ?? ""), []);
  });
});

describe("5 and 6 sessions and messages", () => {
  // design: 000.9
  test("record messages, tokens, cost and timestamps for a session", async () => {
    const before = await fixture.session("main");
    const turn = await fixture.turn("say: count me");
    const session = await fixture.session("main");
    assert.equal(session.messageCount, before.messageCount + 2);
    assert.ok(session.usage.inputTokens > before.usage.inputTokens);
    assert.ok(session.usage.outputTokens > before.usage.outputTokens);
    assert.equal(session.cost.micros, before.cost.micros + turn.cost.micros);
    assert.ok(session.updatedAt > session.createdAt);
    assert.equal(session.parentId, null);
  });

  // design: 000.10
  test("record author, model, text, reasoning, calls, results and end for a message", async () => {
    const turn = await fixture.turn("think: let me look\ntool: ls {}\nthen\nsay: looked");
    const [asked, called, answered, said] = turn.messages;
    assert.equal(asked?.from?.role, "owner");
    assert.deepEqual(
      called?.parts.map(({ type }) => type),
      ["reasoning", "tool_call", "finish"],
    );
    assert.match(called?.model ?? "", /claude/);
    assert.deepEqual(
      answered?.parts.map(({ type }) => type),
      ["tool_result"],
    );
    const finish = said?.parts.at(-1);
    assert.equal(finish?.type === "finish" && finish.reason, "end_turn");
    const times = turn.messages.map(({ createdAt }) => createdAt);
    for (const time of times) assert.equal(new Date(time).toISOString(), time);
    assert.deepEqual(times, times.toSorted());
    assert.ok((times[0] ?? "") >= turn.startedAt && (times.at(-1) ?? "") <= (turn.finishedAt ?? ""));
    assert.ok(turn.messages.every((message) => !("updatedAt" in message)));
  });

  // design: 000.10b
  test("record a call without a state of its own, and its result as a later part", async () => {
    const turn = await fixture.turn("tool: ls {}\nthen\nsay: looked");
    const [, called, answered] = turn.messages;
    const [call] = called?.parts ?? [];
    const [result] = answered?.parts ?? [];
    assert.ok(call?.type === "tool_call" && result?.type === "tool_result");
    assert.deepEqual(Object.keys(call).toSorted(), ["id", "input", "name", "type"]);
    assert.equal(result.id, call.id);
    assert.ok((called?.seq ?? 0) < (answered?.seq ?? 0));
  });
});

describe("7 events", () => {
  // design: 000.6
  test("report text, reasoning, tool starts and ends, and the turn's end with usage", async () => {
    const turn = await fixture.turn("think: hm\ntool: ls {}\nthen\nsay: all of it");
    await fixture.happens((event) => event.type === "turn.finished" && event.turnId === turn.turnId);
    const types = fixture.events.flatMap((event) =>
      "turnId" in event && event.turnId === turn.turnId ? [event.type] : [],
    );
    for (const type of ["turn.started", "reasoning.delta", "tool.started", "tool.finished", "text.delta"] as const) {
      assert.ok(types.includes(type), `${type} is missing from ${types.join()}`);
    }
    assert.equal(types.at(-1), "turn.finished");
    assert.ok(turn.usage.outputTokens > 0);
  });
});

describe("9 provider", () => {
  // design: 000.12b
  test("is called again when it is overloaded or limits the rate, with a notice for people", async () => {
    fixture.cluster.scripted?.failNext({ status: 529 });
    fixture.cluster.scripted?.failNext({ status: 429 });
    const turn = await fixture.turn("say: at last");
    assert.equal(turn.text, "at last");
    const retries = (await fixture.eventsOf(turn.turnId)).filter(({ type }) => type === "model.retry");
    assert.equal(retries.length, 2);
  });

  // design: switch.12, 000.6b, 000.12b
  test("ends the turn with a readable error on any other failure, and the next turn runs", async () => {
    fixture.cluster.scripted?.failNext({ status: 500 });
    const failed = await fixture.turn("say: not this time");
    assert.deepEqual([failed.state, failed.exitReason], ["failed", "error"]);
    assert.match(failed.text ?? "", /did not respond properly\. Please try again/);
    const events = await fixture.eventsOf(failed.turnId);
    assert.ok(events.every(({ type }) => type !== "model.retry"));
    const end = events.at(-1);
    assert.equal(end?.type === "turn.finished" && end.exitReason, "error");
    assert.equal((await fixture.turn("say: again")).text, "again");
  });
});

describe("6 history after a compaction", () => {
  // design: 000.4, 000.9b, 000.26, 000.40b
  test("shows the model only summary and last request, and keeps the whole log", async () => {
    const small = await startClusterFixture(cleanup, "singleton", {
      processes: [],
      model: true,
      settings: "[compaction]\ntrigger_tokens = 25_000\n",
    });
    await small.turn(`remember the blue door ${"blue ".repeat(30_000)}\nsay: noted`);
    await small.turn(`and the red door ${"red ".repeat(30_000)}\nsay: noted too`);
    const turn = await small.turn(`what now ${"green ".repeat(20_000)}\nsay: after the summary`);
    assert.equal(turn.text, "after the summary");
    await small.happens((event) => event.type === "compacted" && event.strategy === "summarize");
    const { messages } = small.lastRequest();
    assert.equal(messages.length, 1, String(messages.map((message) => message.slice(0, 300))));
    assert.match(messages[0] ?? "", /^user: \[CONTEXT SUMMARY\][\s\S]*\[END CONTEXT SUMMARY\]/);
    assert.match(messages[0] ?? "", /what now green/);
    assert.doesNotMatch(messages[0] ?? "", /(?:red ){50}/);
    const kept = textsOf(await small.log(turn.sessionId));
    assert.ok(kept.some((text) => text.includes("remember the blue door")));
    assert.ok(
      kept.every((text) => !text.includes("CONTEXT SUMMARY")),
      "the summary is no message",
    );
    const fields = Object.keys(await small.session("main"));
    assert.ok(fields.includes("parentId") && !fields.some((field) => /summary|kind/i.test(field)), fields.join());

    for (const colour of ["white", "black"]) await small.turn(`the ${colour} door\nsay: noted`);
    // The second answer comes where the summary takes more than eight seconds.
    assert.match(
      await small.client.ask("/compact", "front"),
      /^(?:Compacted: from about \S+ to |Compaction is in progress)/,
    );
    await small.happens((event) => event.type === "compacted" && event.trigger === "demand");
    await small.turn("say: after the command");
    const compacted = small.lastRequest().messages.join("\n");
    assert.match(compacted, /\[CONTEXT SUMMARY\]/);
    assert.doesNotMatch(compacted, /user: the (?:white|black) door/);
  });
});

test("sends only requests that the real API accepts", () => {
  assert.deepEqual(fixture.cluster.strict?.refusals, []);
});
