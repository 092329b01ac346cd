// The preset `repl`, section by section of its design: named sessions, parallel tools, a summary of the middle.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { checkpointRewind, store, type SessionEvent } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { spawning, startClusterFixture, textsOf, waitingFor, type ClusterFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: ClusterFixture;

before(async () => {
  const settings = '[profiles.worker]\ntools = ["exec"]\n';
  fixture = await startClusterFixture(cleanup, "repl", { processes: [], model: true, settings });
});
after(() => cleanup[Symbol.asyncDispose]());

const inWorkspace = (name: string) => join(fixture.cluster.home, "workspace", name);

describe("loop", () => {
  // design: 002.1
  test("streams the answer and returns the final text", async () => {
    const turn = await fixture.turn("say: one two three four five six seven eight");
    const pieces = (await fixture.eventsOf(turn.turnId)).filter(({ type }) => type === "text.delta");
    assert.ok(pieces.length > 1);
    assert.deepEqual([turn.exitReason, turn.text], ["end_turn", "one two three four five six seven eight"]);
  });

  // design: 002.1
  test("runs calls of one answer in parallel and returns results in their order", async () => {
    const turn = await fixture.turn(
      'tool: write {"path":"a.txt","content":"a"}\ntool: write {"path":"b.txt","content":"b"}\ntool: glob {"pattern":"none"}\nthen\nsay: ok',
    );
    const calls = turn.messages[1]?.parts.flatMap((part) => (part.type === "tool_call" ? [part.id] : []));
    assert.equal(calls?.length, 3);
    assert.deepEqual(
      turn.results.map(({ id }) => id),
      calls,
    );
    const meet = (mine: string, theirs: string) => {
      const prompt = `tool: exec {"command":"touch ${mine}"}\nthen\n${waitingFor(theirs)}\nthen\nsay: ${mine} met ${theirs}`;
      return spawning("sessions_spawn", { prompt, agent: "worker" });
    };
    const met = await fixture.turn(`${meet("left", "right")}\n${meet("right", "left")}\nthen\nsay: they met`);
    assert.deepEqual(
      met.results.map(({ content }) => content.split("\n")[0]),
      ["left met right", "right met left"],
    );
  });

  // design: 002.1b
  test("runs commands of one answer one after another", async () => {
    const turn = await fixture.turn(
      'tool: exec {"command":"sleep 0.3; echo first > serial.txt"}\ntool: exec {"command":"cat serial.txt"}\nthen\nsay: ok',
    );
    assert.match(turn.results[1]?.content ?? "", /^first/);
  });

  // design: 002.5
  test("continues with an error result when a tool is unknown or fails", async () => {
    const turn = await fixture.turn('tool: nope {}\ntool: read {"path":"missing"}\nthen\nsay: still here');
    assert.deepEqual([turn.text, turn.results.map(({ isError }) => isError)], ["still here", [true, true]]);
  });

  // design: 002.5, 002.6
  test("waits and retries when the provider limits the rate", async () => {
    fixture.cluster.scripted?.failNext({ status: 429 });
    assert.equal((await fixture.turn("say: patience")).text, "patience");
  });

  // design: 002.5
  test("reports an API error to the person when a retry cannot help", async () => {
    fixture.cluster.scripted?.failNext({ status: 400 });
    const turn = await fixture.turn("say: never");
    assert.equal(turn.exitReason, "error");
    assert.ok((turn.text ?? "").length > 20);
  });

  // design: 002.4
  test("continues a cut answer three times after a note, and then ends with a notice", async () => {
    const { sessionId } = await fixture.turn("say: begin", "nudge");
    await fixture.useModel(sessionId, "rehearsal");
    const cut = "say: part\nstop: max_tokens";
    const saved = await fixture.turn(`${cut}\nthen\nsay: the rest`, "nudge");
    assert.deepEqual([saved.exitReason, saved.modelSteps], ["end_turn", 2]);
    const lost = await fixture.turn([cut, cut, cut, cut, "say: never"].join("\nthen\n"), "nudge");
    assert.deepEqual([lost.exitReason, lost.modelSteps], ["max_tokens", 4]);
    assert.match(lost.text ?? "", /cut off/);
  });
});

describe("truncation", () => {
  // design: 002.7
  test("reads a long file in pages without a gap, also with ten calls in one answer", async () => {
    const lines = Array.from({ length: 1_000 }, (_, index) => `${index + 1} ${"x".repeat(95)}`);
    await writeFile(inWorkspace("long.txt"), `${lines.join("\n")}\n`);
    for (const callsOfAnswer of [1, 10]) {
      let shown = 0;
      for (let offset = 1; offset <= lines.length;) {
        const call = `tool: read ${JSON.stringify({ path: "long.txt", offset })}\n`;
        const turn = await fixture.turn(`${call.repeat(callsOfAnswer)}then\nsay: long`, `long-${offset}`);
        const content = turn.results.at(-1)?.content ?? "";
        assert.ok(content.length <= 40_000, `${content.length} characters`);
        for (const [, number] of content.matchAll(/^ *(\d+)\t/gm)) assert.equal(Number(number), ++shown);
        const next = /Read on with: read\((.*)\)\]$/.exec(content)?.[1];
        if (next === undefined) break;
        ({ offset } = JSON.parse(next) as { offset: number });
        assert.equal(offset, shown + 1);
      }
      assert.equal(shown, lines.length, `${callsOfAnswer} calls`);
    }
  });
});

describe("history", () => {
  // design: 000.4, 002.12, preset.4
  test("keeps the first and the last six messages and the log, and summarises the middle", async () => {
    const small = await startClusterFixture(cleanup, "repl", {
      processes: [],
      model: true,
      settings: "[compaction]\ntrigger_tokens = 25_000\n",
    });
    await small.turn("the goal is a blue boat\nsay: noted");
    for (let index = 0; index < 5; index += 1)
      await small.turn(`step ${index}. ${"word ".repeat(12_000)}\nsay: done ${index}`);
    await small.happens((event) => event.type === "compacted" && event.strategy === "summarize");
    const turn = await small.turn("say: where were we");
    const { messages } = small.lastRequest();
    assert.match(messages[0] ?? "", /the goal is a blue boat/);
    assert.match(messages.join("\n"), /\[CONTEXT SUMMARY\]/);
    assert.doesNotMatch(messages.join("\n"), /step 0\./);
    assert.match(messages.join("\n"), /step 4\./);
    assert.ok(textsOf(await small.log(turn.sessionId)).some((text) => text.startsWith("step 0.")));
  });

  // design: 002.16b
  test("compacts by the tokens that the provider has reported, not by the estimate alone", async () => {
    const { sessionId } = await fixture.turn("say: begin", "reported");
    await fixture.useModel(sessionId, "rehearsal");
    const turnIds = new Set<string>();
    const turn = async (text: string) => turnIds.add((await fixture.turn(text, "reported")).turnId);
    const isCompaction = (event: SessionEvent) => event.type === "compacted" && turnIds.has(event.turnId);
    for (let index = 0; index < 4; index += 1) await turn(`${"word ".repeat(5_000)}\nsay: heard ${index}`);
    await turn("say: as estimated");
    assert.ok(!fixture.events.some(isCompaction));
    await turn("say: as reported\nusage: 90000 10");
    await turn("say: compacted");
    const compacted = await fixture.happens(isCompaction);
    assert.ok(compacted.type === "compacted" && compacted.trigger === "tokens");
  });

  // design: 002.8
  test("shows at most fifty messages and never separates a call from its result", async () => {
    for (let index = 0; index < 16; index += 1)
      await fixture.turn(`number ${index}.\ntool: ls {}\nthen\nsay: heard`, "fifty");
    const { messages } = fixture.lastRequest();
    assert.ok(messages.length <= 51, `${messages.length} messages`);
    assert.match(messages[0] ?? "", /number 0\./);
    assert.match(messages.join("\n"), /number 15\./);
    assert.deepEqual(fixture.cluster.strict?.refusals, []);
  });
});

describe("sessions", () => {
  // design: 002.19
  test("moves a chat to a new, named, earlier or copied session", async () => {
    const route = "http:default:named";
    const old = await fixture.turn("the old one\nsay: old", "named");
    await fixture.bus.request(store.sessionUpdate, { sessionId: old.sessionId, title: "Boats" });
    await fixture.bus.request(store.sessionOpen, { opId: randomUUID(), route, title: "Trains" });
    const fresh = await fixture.turn("the new one\nsay: new", "named");
    assert.notEqual(fresh.sessionId, old.sessionId);
    assert.doesNotMatch(fixture.lastRequest().messages.join(), /the old one/);
    const resumed = await fixture.bus.request(store.sessionBind, { route, session: "boats" });
    assert.equal(resumed.outcome, "found");
    assert.equal((await fixture.turn("say: back", "named")).sessionId, old.sessionId);
    const fork = await fixture.bus.request(store.sessionFork, {
      opId: randomUUID(),
      sessionId: old.sessionId,
      route,
      title: "Boats, otherwise",
    });
    const forked = await fixture.turn("say: another way", "named");
    assert.equal(forked.sessionId, fork.session.sessionId);
    assert.match(fixture.lastRequest().messages.join(), /the old one/);
    assert.ok(!textsOf(await fixture.log(old.sessionId)).includes("another way"));
  });
});

describe("checkpoints", () => {
  // design: 002.21
  test("previews and restores a turn's changes: restores written files, deletes new ones", async () => {
    await writeFile(inWorkspace("kept.txt"), "before");
    const turn = await fixture.turn(
      'tool: write {"path":"kept.txt","content":"after"}\ntool: write {"path":"new.txt","content":"new"}\nthen\nsay: changed',
      "rewind",
    );
    assert.equal(await readFile(inWorkspace("kept.txt"), "utf8"), "after");
    const rewind = async (dryRun: boolean) => {
      const order = { sessionId: turn.sessionId, turnId: turn.turnId };
      const opId = randomUUID();
      const { secret } = await fixture.bus.request(store.rewindPermit, { ...order, rewindId: opId });
      return fixture.bus.request(checkpointRewind, { ...order, opId, dryRun, secret });
    };
    const dry = await rewind(true);
    assert.deepEqual([dry.counts.restored, dry.counts.removed], [1, 1]);
    assert.equal(await readFile(inWorkspace("kept.txt"), "utf8"), "after");
    const done = await rewind(false);
    assert.deepEqual([done.counts.restored, done.counts.removed], [1, 1]);
    assert.equal(await readFile(inWorkspace("kept.txt"), "utf8"), "before");
    await assert.rejects(readFile(inWorkspace("new.txt")));
  });
});

// design: 002.17b, 002.24
test("keeps numbered messages, calls, checkpoints and events of a session", async () => {
  const script = 'tool: write {"path":"kept.md","content":"x"}\nthen\ntool: read {"path":"kept.md"}\nthen\nsay: kept';
  const turn = await fixture.turn(script, "records");
  await fixture.happens((event) => event.type === "turn.finished" && event.turnId === turn.turnId);
  const numbers = (await fixture.log(turn.sessionId)).map(({ seq }) => seq);
  assert.equal(numbers.length, 6);
  assert.deepEqual(
    numbers,
    [...new Set(numbers)].toSorted((one, other) => one - other),
  );
  const { steps } = await fixture.bus.request(store.turnGet, { turnId: turn.turnId });
  assert.deepEqual(
    steps.map(({ tool, state }) => [tool, state]),
    [
      ["write", "done"],
      ["read", "done"],
    ],
  );
  const { checkpoints } = await fixture.bus.request(store.checkpointList, { sessionId: turn.sessionId, limit: 20 });
  assert.deepEqual(
    checkpoints.map(({ checkpointId, kind, files }) => [checkpointId, kind, files]),
    [[turn.turnId, "turn", 1]],
  );
  const durable = fixture.events.flatMap((event) =>
    event.type === "message" && event.message.turnId === turn.turnId ? [event.seq] : [],
  );
  assert.deepEqual(durable, numbers);
});

describe("local commands", () => {
  // design: 002.2
  test("are answered while a turn runs; other input waits until it is stopped", async () => {
    const running = await fixture.client.post(`${waitingFor("never")}\nthen\nsay: never`, { conversation: "busy" });
    const turnId = await fixture.begun(running);
    await fixture.happens((event) => event.type === "tool.started" && event.turnId === turnId);
    const waiting = await fixture.client.post("say: after it", { conversation: "busy" });
    assert.match(await fixture.client.ask("/voice stop", "busy"), /Voice/);
    assert.match(await fixture.client.ask("/queue", "busy"), /after it/);
    assert.equal((await fixture.client.messageState(waiting)).state, "queued");
    const { sessionId } = await fixture.session("http:default:busy");
    await fixture.stop(sessionId);
    const [stopped, next] = [await fixture.ended(running), await fixture.ended(waiting)];
    assert.deepEqual([stopped.exitReason, next.text], ["interrupted", "after it"]);
    assert.ok((stopped.finishedAt ?? "") <= next.startedAt);
    assert.ok(!textsOf(await fixture.log(sessionId)).some((text) => text.startsWith("/")));
  });

  // design: 002.2, 002.3
  test("are answered without the model, also when they do not exist", async () => {
    const before = fixture.cluster.strict?.requests.length;
    for (const text of ["/help", "/status", "/frobnicate now"]) {
      const answer = await fixture.client.ask(text, "commands");
      assert.ok(answer.includes("/help") || text === "/status", answer);
    }
    assert.equal(fixture.cluster.strict?.requests.length, before);
  });
});

test("sends only requests that the real API accepts", () => {
  assert.deepEqual(fixture.cluster.strict?.refusals, []);
});
