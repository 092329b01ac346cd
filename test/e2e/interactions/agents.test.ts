// Sub-agents that end while their parent is at work, compacted, restarted, reset or forked; and money that counts for the parent
// while the child still runs.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { textOf } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { startClusterFixture, type ClusterFixture } from "../presets/support/fixture.ts";

const spawn = (prompt: string, mode: "wait" | "background") =>
  `tool: sessions_spawn ${JSON.stringify({ prompt, mode })}`;
const command = (fixture: ClusterFixture, conversation: string, text: string) =>
  fixture.client.fetch("/api/messages", { method: "POST", body: JSON.stringify({ conversation, text }) });

/** The sub-agent's result as it came into a session; waits for it. */
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

describe("a background sub-agent that ends", () => {
  const cleanup = new Cleanup();
  let fixture: ClusterFixture;

  before(async () => {
    fixture = await startClusterFixture(cleanup, null, {
      replicas: { "agent-core": 2 },
      settings: '[session]\npolicy = "per_conversation"\n[queue]\nmode = "steer"\n[permissions]\nallow = ["exec"]\n',
    });
  });
  after(() => cleanup[Symbol.asyncDispose]());

  // design: interaction.3
  test("while its parent works joins the running turn, once, also when the leader dies in between", async () => {
    await fixture.cluster.fault("agent.after_append", "kill");
    const messageId = await fixture.client.post(
      `${spawn("say: found it", "background")}\nthen\ntool: exec {"command":"sleep 2"}\nthen\nsay: on my own`,
      { conversation: "inject" },
    );
    const { turnId, sessionId } = await fixture.ended(messageId);
    const result = await announced(fixture, sessionId);
    assert.equal(result.turnId, turnId);
    assert.deepEqual(await fixture.cluster.armed(), []);
  });

  test("while its parent works and nothing may join becomes the next turn", async () => {
    const { sessionId } = await fixture.turn("say: hello", "queue");
    await command(fixture, "queue", "/queue mode queue");
    const messageId = await fixture.client.post(
      `${spawn("say: found it", "background")}\nthen\ntool: exec {"command":"sleep 1"}\nthen\nsay: on my own`,
      { conversation: "queue", mode: "queue" },
    );
    const turn = await fixture.ended(messageId);
    assert.equal(turn.text, "on my own");
    const result = await announced(fixture, sessionId);
    assert.notEqual(turn.state, "running");
    assert.ok(result.seq > 0);
  });

  // design: interaction.3
  test("after its parent's conversation was compacted is heard all the same", async () => {
    const turn = await fixture.turn(
      `${spawn("pause: 2500\nsay: found it", "background")}\nthen\nsay: went on`,
      "compact",
    );
    await fixture.client.fetch(`/api/sessions/${turn.sessionId}/compact`, { method: "POST", body: "{}" });
    await announced(fixture, turn.sessionId);
  });

  // design: interaction.3
  test("after the leader was killed twice is heard once", async () => {
    const turn = await fixture.turn(
      `${spawn("pause: 1500\nsay: found it", "background")}\nthen\nsay: went on`,
      "restart",
    );
    await fixture.cluster.kill("agent-core", 1, "SIGKILL");
    await fixture.cluster.kill("agent-core", 2, "SIGKILL");
    await announced(fixture, turn.sessionId);
    assert.equal((await fixture.children(turn.sessionId)).length, 1);
  });

  test("after /new speaks into the conversation that started it, not into the new one", async () => {
    const turn = await fixture.turn(
      `${spawn("pause: 1500\nsay: found it", "background")}\nthen\nsay: went on`,
      "reset",
    );
    await command(fixture, "reset", "/new");
    const fresh = await fixture.turn("say: a new beginning", "reset");
    assert.notEqual(fresh.sessionId, turn.sessionId);
    await announced(fixture, turn.sessionId);
    assert.ok(!(await fixture.log(fresh.sessionId)).some(({ parts }) => textOf(parts).includes("found it")));
  });

  // design: interaction.3
  test("after /session fork speaks into the original", async () => {
    const turn = await fixture.turn(`${spawn("pause: 1500\nsay: found it", "background")}\nthen\nsay: went on`, "fork");
    await command(fixture, "fork", "/session fork a copy");
    const copy = await fixture.turn("say: in the copy", "fork");
    assert.notEqual(copy.sessionId, turn.sessionId);
    await announced(fixture, turn.sessionId);
  });
});

describe("money", () => {
  const cleanup = new Cleanup();
  let fixture: ClusterFixture;

  before(async () => {
    // The scripted model says 100 tokens in and 10 out for each call: a tenth of a dollar.
    fixture = await startClusterFixture(cleanup, null, {
      model: true,
      settings: `
[session]
policy = "per_conversation"
[limits]
max_usd = 0.35
[models.known."claude-sonnet-5-5"]
price = { input = 1000, output = 0 }
[profiles.worker]
tools = ["ls"]
`,
    });
  });
  after(() => cleanup[Symbol.asyncDispose]());

  // design: 000.14, interaction.7
  test("what a sub-agent spends counts for its parent's limit while it still runs, and ends both", async () => {
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
});
