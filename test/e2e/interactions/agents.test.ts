// Sub-agents that end while their parent is busy, compacted, restarted, reset or forked; and costs that count for the parent
// while the child still runs.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { store, textOf } from "@parley/contracts";
import { Cleanup, pollUntil } from "@parley/testing";
import { startClusterFixture, waitingFor, type ClusterFixture } from "../presets/support/fixture.ts";

const spawn = (prompt: string, mode: "wait" | "background") =>
  `tool: sessions_spawn ${JSON.stringify({ prompt, mode })}`;
const command = (fixture: ClusterFixture, conversation: string, text: string) =>
  fixture.client.fetch("/api/messages", { method: "POST", body: JSON.stringify({ conversation, text }) });

/** Ends the commands that wait for the file. */
const createFile = (fixture: ClusterFixture, name: string) =>
  writeFile(join(fixture.cluster.home, "workspace", name), "");

/** The sub-agent's result as input of a session; waits for it. */
async function announced(fixture: ClusterFixture, sessionId: string): Promise<{ turnId: string; seq: number }> {
  for (;;) {
    const messages = await fixture.log(sessionId);
    const found = messages.filter(
      ({ from, parts }) => from?.origin === "subagent" && textOf(parts).startsWith("[sub-agent"),
    );
    assert.ok(found.length <= 1, "the result came more than once");
    if (found[0] !== undefined) return found[0];
    await fixture.happens((event) => event.type === "message" && !messages.some(({ seq }) => seq === event.seq));
  }
}

describe("result of a background sub-agent", () => {
  const cleanup = new Cleanup();
  let fixture: ClusterFixture;

  before(async () => {
    fixture = await startClusterFixture(cleanup, null, {
      processes: ["agent-core"],
      replicas: { "agent-core": 2 },
      settings: '[session]\npolicy = "per_conversation"\n[queue]\nmode = "steer"\n[permissions]\nallow = ["exec"]\n',
    });
  });
  after(() => cleanup[Symbol.asyncDispose]());

  // design: interaction.3
  test("joins the parent's running turn once, also when the leader dies in between", async () => {
    await fixture.cluster.fault("agent.after_append", "kill");
    const messageId = await fixture.client.post(
      `${spawn("say: found it", "background")}\nthen\n${waitingFor("injected")}\nthen\nsay: on my own`,
      { conversation: "inject" },
    );
    await fixture.begun(messageId);
    const { sessionId: parent } = await fixture.session("http:default:inject");
    await pollUntil(async () => {
      const { rows } = await fixture.bus.request(store.inboxList, { sessionId: parent, limit: 10 });
      return rows.length > 0;
    }, "the result of the sub-agent in the queue");
    await createFile(fixture, "injected");
    const { turnId, sessionId } = await fixture.ended(messageId);
    const result = await announced(fixture, sessionId);
    assert.equal(result.turnId, turnId);
    assert.deepEqual(await fixture.cluster.armed(), []);
  });

  // design: 001.34
  test("says that the sub-agent ended without a text", async () => {
    const silent = "say:\nthen\nsay:\nthen\nsay:";
    const { sessionId } = await fixture.turn(`${spawn(silent, "background")}\nthen\nsay: started`, "silent");
    const { seq } = await announced(fixture, sessionId);
    const report = (await fixture.log(sessionId)).find((message) => message.seq === seq);
    assert.match(textOf(report?.parts ?? []), /\n\n\(sub-agent \S+ ended without a text\)$/);
  });

  test("becomes the next turn when the parent is busy and steering is off", async () => {
    const { sessionId } = await fixture.turn("say: hello", "queue");
    await command(fixture, "queue", "/queue mode queue");
    const messageId = await fixture.client.post(
      `${spawn("say: found it", "background")}\nthen\n${waitingFor("queued")}\nthen\nsay: on my own`,
      { conversation: "queue", mode: "queue" },
    );
    await pollUntil(async () => {
      const { rows } = await fixture.bus.request(store.inboxList, { sessionId, limit: 10 });
      return rows.length > 0;
    }, "the result of the sub-agent in the queue");
    await createFile(fixture, "queued");
    const turn = await fixture.ended(messageId);
    assert.equal(turn.text, "on my own");
    const result = await announced(fixture, sessionId);
    assert.notEqual(result.turnId, turn.turnId);
  });

  // design: interaction.3
  test("arrives when the parent's conversation was compacted", async () => {
    await fixture.turn(`say: I see\n${"a long letter ".repeat(2_000)}`, "compact");
    await fixture.turn("say: yes", "compact");
    const turn = await fixture.turn(
      `${spawn(`${waitingFor("compacted")}\nthen\nsay: found it`, "background")}\nthen\nsay: went on`,
      "compact",
    );
    const compacted = await fixture.client.fetch(`/api/sessions/${turn.sessionId}/compact`, {
      method: "POST",
      body: "{}",
    });
    assert.match(await compacted.text(), /"outcome":"compacted"/);
    await createFile(fixture, "compacted");
    await announced(fixture, turn.sessionId);
  });

  // design: interaction.3, 004.11
  test("arrives once when the leader was killed twice", async () => {
    const turn = await fixture.turn(
      `${spawn(`${waitingFor("restarted")}\nthen\nsay: found it`, "background")}\nthen\nsay: went on`,
      "restart",
    );
    await fixture.cluster.kill("agent-core", 1, "SIGKILL");
    await fixture.cluster.kill("agent-core", 2, "SIGKILL");
    await createFile(fixture, "restarted");
    await announced(fixture, turn.sessionId);
    assert.equal((await fixture.children(turn.sessionId)).length, 1);
  });

  test("goes to the original session when /new has started another one", async () => {
    const turn = await fixture.turn(
      `${spawn(`${waitingFor("reset")}\nthen\nsay: found it`, "background")}\nthen\nsay: went on`,
      "reset",
    );
    await command(fixture, "reset", "/new");
    const fresh = await fixture.turn("say: a new beginning", "reset");
    assert.notEqual(fresh.sessionId, turn.sessionId);
    await createFile(fixture, "reset");
    await announced(fixture, turn.sessionId);
    assert.ok(!(await fixture.log(fresh.sessionId)).some(({ parts }) => textOf(parts).includes("found it")));
  });

  // design: interaction.3
  test("goes to the original session when /session fork has copied it", async () => {
    const turn = await fixture.turn(
      `${spawn(`${waitingFor("forked")}\nthen\nsay: found it`, "background")}\nthen\nsay: went on`,
      "fork",
    );
    await command(fixture, "fork", "/session fork a copy");
    const copy = await fixture.turn("say: in the copy", "fork");
    assert.notEqual(copy.sessionId, turn.sessionId);
    await createFile(fixture, "forked");
    await announced(fixture, turn.sessionId);
  });
});

describe("costs", () => {
  const cleanup = new Cleanup();
  let fixture: ClusterFixture;

  before(async () => {
    // The scripted model reports 100 input and 10 output tokens for each call: a tenth of a dollar.
    fixture = await startClusterFixture(cleanup, null, {
      processes: [],
      model: true,
      settings: `
[session]
policy = "per_conversation"
[limits]
max_usd = 0.35
max_usd_per_session = 0.55
[models.known."claude-sonnet-5-5"]
price = { input = 1000, output = 0 }
[profiles.worker]
tools = ["ls"]
`,
    });
  });
  after(() => cleanup[Symbol.asyncDispose]());

  // design: 000.14, interaction.7
  test("counts a running sub-agent's costs for its parent's limit and ends both at the limit", async () => {
    const rounds = Array.from({ length: 8 }, (_, index) => `tool: ls {"path":".${"/.".repeat(index)}"}`).join(
      "\nthen\n",
    );
    const task = JSON.stringify({ prompt: rounds, mode: "wait", profile: "worker" });
    const turn = await fixture.turn(`tool: sessions_spawn ${task}\nthen\nsay: never`, "budget");
    assert.equal(turn.exitReason, "max_budget");
    const [child] = await fixture.children(turn.sessionId);
    assert.ok(child !== undefined);
    assert.match(turn.results[0]?.content ?? "", /max_budget/);
    const session = await fixture.session("http:default:budget");
    assert.equal(session.treeCost.micros, session.cost.micros + child.cost.micros);
    assert.ok(session.treeCost.micros <= 500_000, `${session.treeCost.micros} millionths were spent of 350,000`);
  });

  // design: 003.2c
  test("end a session, with its sub-agents' costs, and say how to go on", async () => {
    const task = JSON.stringify({ prompt: "say: looked", mode: "wait", profile: "worker" });
    const first = await fixture.turn(`tool: sessions_spawn ${task}\nthen\nsay: one`, "session");
    assert.equal(first.text, "one");
    for (const text of ["two", "three", "four"]) await fixture.turn(`say: ${text}`, "session");
    const ended = await fixture.turn("say: never", "session");
    assert.deepEqual([ended.exitReason, ended.modelSteps], ["max_budget", 0]);
    assert.match(ended.text ?? "", /it cost \$0\.60\. Start a new one with \/new/);
    await fixture.client.ask("/new", "session");
    assert.equal((await fixture.turn("say: afresh", "session")).text, "afresh");
  });
});
