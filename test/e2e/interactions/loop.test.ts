// Parts of the loop that interact: cancelled parallel calls, hooks and nudges that never end, compaction during a turn, rewound
// files; with kills in between.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { store, textOf, type ToolResult } from "@parley/contracts";
import { Cleanup, startTelegramPeer, type TelegramPeer } from "@parley/testing";
import pg from "pg";
import { spawning, startClusterFixture, waitingFor, type ClusterFixture } from "../presets/support/fixture.ts";

const say = (fixture: ClusterFixture, conversation: string, text: string) =>
  fixture.client.fetch("/api/messages", { method: "POST", body: JSON.stringify({ conversation, text }) });

describe("calls, hooks and nudges", () => {
  const cleanup = new Cleanup();
  let fixture: ClusterFixture;

  before(async () => {
    fixture = await startClusterFixture(cleanup, null, {
      processes: ["agent-core"],
      replicas: { "agent-core": 2 },
      settings: `
[session]
policy = "per_conversation"
[queue]
mode = "queue"
[tools]
execution = "parallel"
[permissions]
allow = ["exec"]
ask = ["exec(touch asked*)", "write(asked*)"]
[limits]
max_rounds_without_tools = 4
[agent]
max_nudges = 2
[[hooks]]
name = "never-enough"
event = "Stop"
command = '''grep -q "more please" && echo '{"decision": "block", "reason": "more"}' || true'''
`,
    });
  });
  after(() => cleanup[Symbol.asyncDispose]());

  // design: 004.4
  test("tells people in a sentence that an internal error ended their turn, and answers the next message", async () => {
    await fixture.turn("say: ready", "internal");
    await fixture.cluster.fault("agent.before_model", "throw");
    const failed = await fixture.turn("say: never", "internal");
    const sentence = "I could not answer this because of an internal error. It has been logged; please try again.";
    assert.deepEqual([failed.state, failed.exitReason, failed.text], ["failed", "error", sentence]);
    assert.equal((await fixture.turn("say: again", "internal")).text, "again");
  });

  // design: interaction.2
  test("records one result for each parallel call, in call order, when they are stopped", async () => {
    const calls = [
      spawning("sessions_spawn", { prompt: "say: quick" }),
      spawning("sessions_spawn", { prompt: "pause: 600000\nsay: late" }),
      spawning("write", { path: "asked.txt", content: "x" }),
    ];
    const messageId = await fixture.client.post(calls.join("\n"), { conversation: "stopped" });
    await fixture.happens((event) => event.type === "approval.requested");
    await fixture.happens((event) => event.type === "turn.finished" && event.text === "quick");
    await fixture.cluster.fault("agent.before_finish", "kill");
    await say(fixture, "stopped", "/stop");
    const turn = await fixture.ended(messageId);
    assert.equal(turn.state, "cancelled");
    assert.deepEqual(await fixture.cluster.armed(), []);
    const asked = turn.messages.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === "tool_call" ? [part.id] : [])),
    );
    assert.equal(asked.length, 3);
    assert.deepEqual(
      turn.results.map(({ id }: ToolResult) => id),
      asked,
    );
  });

  test("keeps the prefix of the first answer when a person stops it", async () => {
    const messageId = await fixture.client.post("wait: 20\nwords: 5000", { conversation: "cut" });
    const turnId = await fixture.begun(messageId);
    await fixture.happens((event) => event.type === "text.delta" && event.turnId === turnId);
    await say(fixture, "cut", "/stop");
    const { sessionId, state } = await fixture.ended(messageId);
    assert.equal(state, "cancelled");
    const database = new pg.Client(fixture.cluster.databaseUrl);
    await database.connect();
    cleanup.add(() => database.end());
    const prefix = async () => {
      const { rows } = await database.query<{ hash: string | null }>(
        "SELECT prefix_hash AS hash FROM parley.sessions WHERE id = $1",
        [sessionId],
      );
      return rows[0]?.hash;
    };
    const kept = await prefix();
    assert.ok(typeof kept === "string", "the session has no prefix");
    await fixture.turn("say: on", "cut");
    assert.equal(await prefix(), kept);
  });

  test("requests no approval and reports the error when a call's arguments are invalid", async () => {
    const wrong = { command: "touch asked", colour: "red" };
    const turn = await fixture.turn(`tool: exec ${JSON.stringify(wrong)}`, "impossible");
    assert.equal(turn.state, "done");
    const [result] = turn.results;
    assert.match(
      result?.content ?? "",
      /^Not run: invalid arguments for exec: has no property "colour"\. Valid arguments: command, /,
    );
    assert.equal(result?.refused, true);
    const asked = (await fixture.eventsOf(turn.turnId)).filter(({ type }) => type === "approval.requested");
    assert.deepEqual(asked, []);
  });

  // design: interaction.8, 003.3
  test("ends at the loop guard when a Stop hook always continues, also after a leader's death", async () => {
    await fixture.cluster.fault("agent.after_commit", "kill");
    const turn = await fixture.turn("say: more please", "stop-hook");
    assert.equal(turn.exitReason, "max_turns");
    assert.match(turn.text ?? "", /continued 4 times/);
    assert.deepEqual(await fixture.cluster.armed(), []);
  });

  // design: interaction.8
  test("ends with a notice after two nudges when answers are cut off repeatedly", async () => {
    const turn = await fixture.turn(
      "say: and so on\nstop: max_tokens\nthen\nsay: and on\nstop: max_tokens\nthen\nsay: and on\nstop: max_tokens",
      "nudges",
    );
    assert.equal(turn.exitReason, "max_tokens");
    assert.match(turn.text ?? "", /cut off/);
    const nudges = turn.messages.filter(
      ({ role, from, parts }) => role === "user" && from === undefined && textOf(parts).startsWith("[Cut off"),
    );
    assert.equal(nudges.length, 2);
  });
});

describe("small context window", () => {
  const cleanup = new Cleanup();
  let fixture: ClusterFixture;

  before(async () => {
    fixture = await startClusterFixture(cleanup, null, {
      processes: ["agent-core", "store"],
      replicas: { "agent-core": 2, store: 2 },
      settings: `
[session]
policy = "per_conversation"
[agent]
max_output_tokens = 1000
[models.known.rehearsal]
context_window = 16000
[compaction]
keep_first = 1
keep_last = 2
max_messages = 40
[permissions]
allow = ["exec"]
`,
    });
  });
  after(() => cleanup[Symbol.asyncDispose]());

  // design: interaction.4
  test("compacts between tool rounds when results exceed the window, and completes the turn", async () => {
    await fixture.cluster.fault("store.before_compact", "kill");
    const big = (round: number) => JSON.stringify({ command: `echo ${round}; head -c 20000 /dev/zero | tr "\\0" x` });
    const rounds = Array.from({ length: 9 }, (_, round) => `tool: exec ${big(round)}`).join("\nthen\n");
    const turn = await fixture.turn(`${rounds}\nthen\nsay: through`, "compacted");
    assert.equal(turn.state, "done");
    assert.deepEqual(await fixture.cluster.armed(), []);
    await fixture.happens((event) => event.type === "compacted");
    const calls = turn.messages.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === "tool_call" ? [part.id] : [])),
    );
    assert.deepEqual(
      turn.results.map(({ id }) => id),
      calls,
      "each call has its result in the log, once",
    );
  });
});

describe("denial", () => {
  const cleanup = new Cleanup();
  let fixture: ClusterFixture;

  before(async () => {
    fixture = await startClusterFixture(cleanup, null, {
      processes: [],
      settings: '[session]\npolicy = "per_conversation"\n',
    });
  });
  after(() => cleanup[Symbol.asyncDispose]());

  test("applies to its own call only, and later calls run when a rule allows them", async () => {
    const messageId = await fixture.client.post(
      'tool: exec {"command":"echo ran"}\nthen\ntool: exec {"command":"echo ran"}',
      {
        conversation: "no",
      },
    );
    const turnId = await fixture.begun(messageId);
    await fixture.happens((event) => event.type === "approval.requested" && event.turnId === turnId);
    const { sessionId } = await fixture.session("http:default:no");
    await fixture.bus.request(store.sessionUpdate, { sessionId, overrides: { allow: ["exec"] } });
    await fixture.answer(turnId, false);
    const { results } = await fixture.ended(messageId);
    assert.match(results[0]?.content ?? "", /^Not run: denied by test/);
    assert.match(results[1]?.content ?? "", /ran/);
  });
});

describe("files", () => {
  const cleanup = new Cleanup();
  let fixture: ClusterFixture;
  const file = (name: string) => readFile(join(fixture.cluster.home, "workspace", name), "utf8");

  before(async () => {
    fixture = await startClusterFixture(cleanup, null, {
      processes: [],
      settings: '[session]\npolicy = "per_conversation"\n[permissions]\nallow = ["exec", "process"]\n',
    });
  });
  after(() => cleanup[Symbol.asyncDispose]());

  const write = (content: string) => `tool: write ${JSON.stringify({ path: "kept.txt", content })}`;

  // design: interaction.6
  test("have one checkpoint for several messages of a turn, and a rewind restores it", async () => {
    await fixture.turn(`${write("before")}\nthen\nsay: ok`, "rewind");
    const messageId = await fixture.client.post(`${write("first")}\nthen\n${waitingFor("steered")}\nthen\nsay: ok`, {
      conversation: "rewind",
      mode: "steer",
    });
    await fixture.happens((event) => event.type === "tool.started" && event.tool === "exec");
    await fixture.client.post(`${write("joined")}\nthen\nsay: joined`, { conversation: "rewind", mode: "steer" });
    await writeFile(join(fixture.cluster.home, "workspace", "steered"), "");
    const turn = await fixture.ended(messageId);
    assert.equal(await file("kept.txt"), "joined");
    const rewound = await fixture.client.fetch(`/api/sessions/${turn.sessionId}/rewind`, {
      method: "POST",
      body: JSON.stringify({ checkpointId: turn.turnId }),
    });
    assert.equal(rewound.status, 200, await rewound.text());
    assert.equal(await file("kept.txt"), "before");
  });

  // design: interaction.6
  test("are rewound only when no background command of the conversation still writes", async () => {
    const first = await fixture.turn(
      `${write("mine")}\ntool: exec ${JSON.stringify({ command: "sleep 600", background: true })}\nthen\nsay: ok`,
      "background",
    );
    const rewind = () =>
      fixture.client.fetch(`/api/sessions/${first.sessionId}/rewind`, {
        method: "POST",
        body: JSON.stringify({ checkpointId: first.turnId }),
      });
    const refused = await rewind();
    assert.equal(refused.status, 409, await refused.text());
    const processId = /[0-9a-f]+@[\w-]+/.exec(first.results.map(({ content }) => content).join("\n"))?.[0];
    assert.ok(processId !== undefined);
    await fixture.turn(
      `tool: process ${JSON.stringify({ action: "signal", id: processId, signal: "SIGKILL" })}\nthen\ntool: process ${JSON.stringify({ action: "poll", id: processId, wait_seconds: 10 })}\nthen\nsay: ok`,
      "background",
    );
    const done = await rewind();
    assert.equal(done.status, 200, await done.text());
  });

  // design: interaction.6
  test("can be rewound in the original session after a fork", async () => {
    const turn = await fixture.turn(`${write("forked")}\nthen\nsay: ok`, "forked");
    await say(fixture, "forked", "/session fork a copy");
    await fixture.turn("say: in the copy", "forked");
    const rewound = await fixture.client.fetch(`/api/sessions/${turn.sessionId}/rewind`, {
      method: "POST",
      body: JSON.stringify({ checkpointId: turn.turnId }),
    });
    assert.equal(rewound.status, 200, await rewound.text());
  });
});

describe("kill at every point of a turn", () => {
  const cleanup = new Cleanup();
  let telegram: TelegramPeer;
  let fixture: ClusterFixture;

  before(async () => {
    telegram = await startTelegramPeer();
    cleanup.add(() => telegram.close());
    fixture = await startClusterFixture(cleanup, null, {
      replicas: { "agent-core": 2, store: 2, "channel-gateway": 2, "tool-runner": 2 },
      secrets: { PARLEY_CHANNEL_TELEGRAM: telegram.token },
      settings: `
[session]
policy = "per_conversation"
[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "${telegram.url}"
owners = ["1"]
[permissions]
allow = ["exec"]
`,
    });
  });
  after(() => cleanup[Symbol.asyncDispose]());

  const points = [
    "store.after_inbox",
    "agent.after_claim",
    "agent.mid_stream",
    "agent.before_tool",
    "agent.after_tools",
    "agent.before_commit",
    "outbox.before_claim",
  ];
  for (const [index, point] of points.entries()) {
    // design: interaction.9
    test(`sends the answer once and repeats no side effect when killed at ${point}`, async () => {
      const id = `point-${index}`;
      await fixture.cluster.fault(point, "kill");
      telegram.say(`tool: exec ${JSON.stringify({ command: `echo x >> ${id}` })}\nthen\nsay: answer ${id}`, {
        from: 1,
      });
      await telegram.until(id, () => telegram.sent.find(({ text }) => text.includes(`answer ${id}`)) ?? null);
      assert.deepEqual(await fixture.cluster.armed(), [], "the fault fired");
      assert.equal(telegram.sent.filter(({ text }) => text.includes(`answer ${id}`)).length, 1);
      const effects = await readFile(join(fixture.cluster.home, "workspace", id), "utf8").catch(() => "");
      assert.ok(effects.split("\n").filter((each) => each !== "").length <= 1);
    });
  }
});
