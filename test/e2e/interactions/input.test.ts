// Input to a busy agent, with the leader or a service killed in between: answers go to the chat of their question, /stop does not
// wait, and the log contains everything once.
import assert from "node:assert/strict";
import { createHmac, randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { controlCancel, store } from "@parley/contracts";
import { Cleanup, pollUntil, startTelegramPeer, type TelegramPeer } from "@parley/testing";
import pg from "pg";
import { startClusterFixture, waitingFor, type ClusterFixture } from "../presets/support/fixture.ts";

const say = (fixture: ClusterFixture, conversation: string, text: string, more: object = {}) =>
  fixture.client.fetch("/api/messages", { method: "POST", body: JSON.stringify({ conversation, text, ...more }) });

describe("one agent in several chats that replies by the tool message", () => {
  const cleanup = new Cleanup();
  let telegram: TelegramPeer;
  let fixture: ClusterFixture;

  before(async () => {
    telegram = await startTelegramPeer();
    cleanup.add(() => telegram.close());
    fixture = await startClusterFixture(cleanup, null, {
      processes: ["agent-core"],
      replicas: { "agent-core": 2 },
      secrets: { PARLEY_CHANNEL_TELEGRAM: telegram.token },
      settings: `
[session]
policy = "singleton"
[queue]
mode = "steer"
[output]
mode = "message_tool"
[permissions]
allow = ["exec", "message"]
[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "${telegram.url}"
owners = ["1", "2"]
`,
    });
  });
  after(() => cleanup[Symbol.asyncDispose]());

  // design: interaction.1
  test("sends each reply to the chat that it names when two chats share a turn", async () => {
    telegram.say(`${waitingFor("joined")}\nthen\nsay: nothing`, { from: 1 });
    await fixture.happens((event) => event.type === "tool.started" && event.tool === "exec");
    await fixture.cluster.fault("agent.after_append", "kill");
    const to = (chat: number, text: string) => `tool: message ${JSON.stringify({ text, to: `telegram:main:${chat}` })}`;
    telegram.say(`${to(1, "for one")}\n${to(2, "for two")}\nthen\nsay: done`, { from: 2 });
    const { sessionId } = await fixture.session("main");
    await pollUntil(async () => {
      const { rows } = await fixture.bus.request(store.inboxList, { sessionId, limit: 10 });
      return rows.length > 0;
    }, "the message of the second chat in the queue");
    await writeFile(join(fixture.cluster.home, "workspace", "joined"), "");
    await telegram.untilSent(2);
    await fixture.happens((event) => event.type === "turn.finished");
    assert.deepEqual(await fixture.cluster.armed(), [], "the leader was killed");
    const byChat = telegram.sent.toSorted((a, b) => Number(a.chatId) - Number(b.chatId));
    assert.deepEqual(
      byChat.map((message) => [message.chatId, message.text]),
      [
        [1, "for one"],
        [2, "for two"],
      ],
    );
    const turns = new Set((await fixture.log(sessionId)).map(({ turnId }) => turnId));
    assert.equal(turns.size, 1, "the second chat joined the turn of the first");
  });
});

/** The longest that the settings allow: a test that waits for its end fails. */
const windowMs = 60_000;

describe("batch window, queues and /stop", () => {
  const cleanup = new Cleanup();
  let fixture: ClusterFixture;

  before(async () => {
    process.env["PARLEY_CHANNEL_HOOK"] = "a secret";
    fixture = await startClusterFixture(cleanup, null, {
      processes: ["agent-core", "store"],
      secrets: { PARLEY_CHANNEL_HOOK: "a secret" },
      settings: `
[session]
policy = "per_conversation"
[queue]
mode = "coalesce"
window_ms = ${windowMs}
[permissions]
allow = ["exec"]
[webhooks.ci]
secret_env = "PARLEY_CHANNEL_HOOK"
`,
    });
  });
  after(() => cleanup[Symbol.asyncDispose]());

  // design: interaction.5
  test("withdraws input immediately when /stop arrives during the batch window", async () => {
    const messageId = await fixture.client.post("say: never", { conversation: "window" });
    const begin = performance.now();
    const answer = await (await say(fixture, "window", "/stop")).text();
    assert.match(answer, /1 queued message/);
    assert.ok(performance.now() - begin < windowMs);
    assert.equal((await fixture.client.messageState(messageId)).state, "cancelled");
  });

  // design: interaction.5
  test("starts one turn with the collected input when a command ends the batch window", async () => {
    const first = await fixture.client.post("say: one", { conversation: "flush" });
    const second = await fixture.client.post("say: two", { conversation: "flush" });
    const begin = performance.now();
    await say(fixture, "flush", "/status");
    const [one, two] = [await fixture.client.settled(first), await fixture.client.settled(second)];
    assert.equal(one.turnId, two.turnId);
    assert.equal(two.text, "two");
    assert.ok(performance.now() - begin < windowMs);
  });

  test("ends a turn that runs a tool when /stop arrives and the leader is killed", async () => {
    const messageId = await fixture.client.post('tool: exec {"command":"sleep 300","wait_seconds":120}', {
      conversation: "busy",
      mode: "queue",
    });
    await fixture.begun(messageId);
    const waiting = await fixture.client.post("say: later", { conversation: "busy", mode: "queue" });
    await fixture.cluster.fault("agent.before_finish", "kill");
    await say(fixture, "busy", "/stop");
    assert.equal((await fixture.client.settled(messageId)).state, "cancelled");
    assert.equal((await fixture.client.messageState(waiting)).state, "cancelled");
    assert.deepEqual(await fixture.cluster.armed(), []);
  });

  test("stops a turn when the order arrives before the leader knows that the turn runs", async () => {
    const database = new pg.Client({ connectionString: fixture.cluster.databaseUrl });
    await database.connect();
    try {
      // The store has committed the claim and cannot answer yet.
      await fixture.cluster.fault("store.after_claim", "block:2000");
      const messageId = await fixture.client.post("pause: 120000\nsay: never", {
        conversation: "unknown-turn",
        mode: "interrupt",
      });
      const running = "SELECT t.id, t.session_id FROM parley.turns t WHERE t.inbox_id = $1 AND t.state = 'running'";
      const turn = await pollUntil(async () => {
        const { rows } = await database.query<{ id: string; session_id: string }>(running, [messageId]);
        return rows[0];
      }, "the claimed turn");
      const order = { sessionId: turn.session_id, turnId: turn.id };
      const { cancelled } = await fixture.bus.request(controlCancel, order);
      assert.equal(cancelled, false, "the leader does not know the turn");
      assert.equal((await fixture.ended(messageId)).state, "cancelled");
    } finally {
      await database.end();
    }
  });

  // design: interaction.10
  test("answers 202 once the webhook's message is stored, and completes one turn after a crash", async () => {
    const id = randomUUID();
    const body = JSON.stringify({ text: "say: built" });
    const post = async () => {
      const timestamp = String(Math.floor(Date.now() / 1000));
      const signature = createHmac("sha256", "a secret").update(`${id}.${timestamp}.${body}`).digest("hex");
      const headers = {
        "content-type": "application/json",
        "x-parley-delivery": id,
        "x-parley-timestamp": timestamp,
        "x-parley-signature": `sha256=${signature}`,
      };
      const url = `${fixture.cluster.httpUrl}/hooks/ci`;
      return fetch(url, { method: "POST", headers, body }).then(
        (response) => response.status,
        () => 0,
      );
    };
    await fixture.cluster.fault("store.before_inbox", "kill");
    await fixture.cluster.fault("agent.before_commit", "kill");
    for (let status = await post(); status !== 202; status = await post()) await delay(50);
    assert.equal(await post(), 202);
    await fixture.happens((event) => event.type === "turn.finished" && event.text.includes("built"));
    assert.deepEqual(await fixture.cluster.armed(), [], "store and leader died, before and after the 202");
    const session = await fixture.session("hook:ci:ci");
    const log = await fixture.log(session.sessionId);
    assert.deepEqual(
      log.map(({ role }) => role),
      ["user", "assistant"],
    );
  });
});
