// An agent with tools of its own that delegates to profiles, and profiles that people and webhooks talk to directly.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { Cleanup, startTelegramPeer, type TelegramPeer } from "@parley/testing";
import { runParley } from "../../packages/cli/test/support/parley.ts";
import { spawning, startClusterFixture, type ClusterFixture } from "./presets/support/fixture.ts";

const cleanup = new Cleanup();
const secret = "a-secret-that-is-shared";
let fixture: ClusterFixture;
let telegram: TelegramPeer;

before(async () => {
  telegram = await startTelegramPeer();
  cleanup.add(() => telegram.close());
  fixture = await startClusterFixture(cleanup, null, {
    processes: [],
    model: true,
    secrets: { PARLEY_CHANNEL_HOOK: secret, PARLEY_CHANNEL_TELEGRAM: telegram.token },
    settings: `
[agent]
tools = ["message", "delegate"]
stop_sequences = ["<<END>>"]
[permissions]
allow = ["exec"]
[profiles.worker]
tools = ["Bash"]
system_prompt = "You are the worker."
max_iterations = 2
[[hooks]]
name = "worker-only"
event = "UserPromptSubmit"
profile = "worker"
command = "grep -q blocked && { echo 'not by the worker' >&2; exit 2; } || true"
[webhooks.build]
secret_env = "PARLEY_CHANNEL_HOOK"
profile = "worker"
[channels.telegram.coder]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "${telegram.url}"
owners = ["42"]
profile = "worker"
`,
  });
});
after(() => cleanup[Symbol.asyncDispose]());

async function post(body: object): Promise<{ status: number; messageId: string; error?: { message: string } }> {
  const response = await fixture.client.fetch("/api/messages", { method: "POST", body: JSON.stringify(body) });
  return { status: response.status, ...((await response.json()) as { messageId: string }) };
}

const exec = `tool: exec ${JSON.stringify({ command: "echo worked" })}`;

// design: 001.14
test("lets an agent without tools of its own delegate to a profile that has them", async () => {
  const task = { prompt: `${exec}\nthen\nsay: the worker worked`, profile: "worker" };
  const turn = await fixture.turn(`${exec}\n${spawning("sessions_spawn", task)}\nthen\nsay: delegated`, "top");
  assert.match(turn.results[0]?.content ?? "", /^Tool not found: exec\. Available tools: message, sessions_spawn\./);
  assert.match(turn.results[1]?.content ?? "", /^the worker worked/);
  assert.deepEqual(fixture.cluster.strict?.requests.at(-1)?.stop_sequences, ["<<END>>"]);
});

// design: 001.33
test("runs a profile by itself with its own words, tools, limits and session", async () => {
  const { messageId } = await post({
    text: `${exec}\nthen\n${exec}\nthen\n${exec}`,
    profile: "worker",
    conversation: "c",
  });
  const turn = await fixture.ended(messageId);
  assert.match(turn.results[0]?.content ?? "", /^worked/);
  assert.equal(turn.exitReason, "max_turns");
  const { system, tools } = fixture.lastRequest();
  assert.match(system, /You are the worker\./);
  assert.deepEqual(tools, ["exec"]);
  const session = await fixture.session("http:default:c@worker");
  assert.deepEqual([session.sessionId, session.profile], [turn.sessionId, "worker"]);
  const renewed = await post({ text: "/new", profile: "worker", conversation: "c" });
  assert.equal(renewed.status, 200);
  const next = await fixture.ended((await post({ text: "say: hi", profile: "worker", conversation: "c" })).messageId);
  assert.notEqual(next.sessionId, turn.sessionId);
  assert.deepEqual(fixture.lastRequest().tools, ["exec"]);
});

// design: 001.33
test("runs a profile from the command line, with limits and as a named conversation", async () => {
  const run = async (...args: string[]) => runParley(fixture.cluster.home, ["run", ...args]);
  const { code, stdout } = await run("--profile", "worker", "--max-turns", "3", `${exec}\nthen\nsay: by the worker`);
  assert.deepEqual([code, stdout], [0, "by the worker\n"]);
  assert.deepEqual(fixture.lastRequest().tools, ["exec"]);
  for (const text of ["say: one", "say: two"]) {
    const named = await run("--profile", "worker", "--conversation", "office", text);
    assert.equal(named.code, 0, named.stderr);
  }
  const session = await fixture.session("http:default:office@worker");
  assert.deepEqual([session.profile, session.messageCount], ["worker", 4]);
  const unknown = await run("--profile", "nobody", "hello");
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /there is no profile "nobody"; known: reader, worker/);
  const continued = await run("--profile", "worker", "--continue", "hello");
  assert.equal(continued.code, 2);
  assert.match(continued.stderr, /keeps its profile/);
});

// design: 001.33
test("runs the profile of a job in the job's own session", async () => {
  const cli = (...args: string[]) => runParley(fixture.cluster.home, args);
  const added = await cli("cron", "add", "every 24h", "say: by the job", "--profile", "worker", "--json");
  assert.equal(added.code, 0, added.stderr);
  const { job } = JSON.parse(added.stdout) as { job: { id: string } };
  await cli("cron", "run", job.id);
  const ended = await fixture.happens((event) => event.type === "turn.finished" && event.text === "by the job");
  assert.ok(ended.type === "turn.finished");
  const session = await fixture.session(`cron:${job.id}@worker`);
  assert.equal(session.profile, "worker");
  assert.deepEqual(fixture.lastRequest().tools, ["exec"]);
  const unknown = await cli("cron", "add", "every 24h", "say: never", "--profile", "nobody");
  assert.match(unknown.stderr, /there is no profile "nobody"; known: reader, worker/);
});

// design: 003.1, 003.25b
test("runs a hook of a profile only in its sessions", async () => {
  const { messageId } = await post({ text: "say: blocked", profile: "worker", conversation: "hooked" });
  assert.match((await fixture.ended(messageId)).text ?? "", /A hook blocked this message: not by the worker/);
  assert.equal((await fixture.turn("say: blocked", "hooked")).text, "blocked");
});

test("refuses a profile that does not exist and names those that do", async () => {
  const { status, error } = await post({ text: "hello", profile: "nobody" });
  assert.equal(status, 400);
  assert.match(error?.message ?? "", /there is no profile "nobody"; known: reader, worker/);
});

// design: 001.33
test("runs the profile of a webhook in the webhook's own session", async () => {
  const [body, id, at] = ["say: built", "b-1", String(Math.floor(Date.now() / 1_000))];
  const hmac = createHmac("sha256", secret).update(`${id}.${at}.${body}`).digest("hex");
  const headers = { "x-parley-delivery": id, "x-parley-timestamp": at, "x-parley-signature": `sha256=${hmac}` };
  const url = `${fixture.cluster.httpUrls[0] ?? ""}/hooks/build`;
  const response = await fetch(url, { method: "POST", body, headers });
  const turn = await fixture.ended(((await response.json()) as { messageId: string }).messageId);
  const session = await fixture.session("hook:build:build");
  assert.deepEqual([session.sessionId, session.profile], [turn.sessionId, "worker"]);
});

// design: 001.33
test("runs the profile that a chat request, a WebSocket frame or the account of a channel names", async () => {
  const chat = await fixture.client.fetch("/v1/chat", {
    method: "POST",
    body: JSON.stringify({ message: "say: by chat", session_id: "chat", profile: "worker" }),
  });
  assert.match(await chat.text(), /event: done/);
  const url = `${(fixture.cluster.httpUrls[0] ?? "").replace("http", "ws")}/api/ws`;
  const socket = new WebSocket(url, [`parley.bearer.${fixture.cluster.token}`]);
  await once(socket, "open");
  const frame = { type: "message", id: "1", conversation: "socket", text: "say: by socket", profile: "worker" };
  socket.send(JSON.stringify(frame));
  await fixture.happens((event) => event.type === "turn.finished" && event.text === "by socket");
  socket.close();
  telegram.say("say: by telegram");
  await telegram.untilAnswered(1);
  const keys = ["http:default:chat@worker", "http:default:socket@worker", "telegram:coder:42"];
  const sessions = await Promise.all(keys.map((key) => fixture.session(key)));
  assert.deepEqual(
    sessions.map(({ profile, messageCount }) => [profile, messageCount]),
    keys.map(() => ["worker", 2]),
  );
});
