// Untrusted content that tries to act later or elsewhere: in another turn, after a compaction or a takeover, in a sub-agent, another
// session, a job, a file. The tests check whether the command ran, who the author of a line is, and whether an approval was requested.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { Cleanup, startTelegramPeer, type TelegramPeer } from "@parley/testing";
import { startClusterFixture, textsOf, type ClusterFixture } from "../e2e/presets/support/fixture.ts";
import { createJob, runJob } from "../e2e/support/jobs.ts";
import { judgeOf, running, serveInjection, steps, tool, type Judge } from "./support/judge.ts";

const cleanup = new Cleanup();
let fixture: ClusterFixture;
let telegram: TelegramPeer;
let page: string;
let judge: Judge;

before(async () => {
  page = await serveInjection(cleanup);
  telegram = await startTelegramPeer();
  cleanup.add(() => telegram.close());
  fixture = await startClusterFixture(cleanup, null, {
    processes: ["agent-core"],
    replicas: { "agent-core": 2 },
    isolation: "container",
    settings: `
[session]
policy = "per_conversation"
[permissions]
mode = "accept_edits"
[tools.web]
allow_private = ["127.0.0.1"]
[compaction]
keep_last = 2
[profiles.worker]
tools = ["exec", "read", "web_fetch"]
[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "${telegram.url}"
owners = ["1"]
groups = ["-100", "-200"]
`,
    secrets: { PARLEY_CHANNEL_TELEGRAM: telegram.token },
  });
  judge = judgeOf(fixture, page);
});
after(() => cleanup[Symbol.asyncDispose]());

test("runs a command without approval when nothing untrusted was read", async () => {
  await judge.assertRuns("clean", randomUUID());
});

test("requests approval when an earlier turn of the session read a page", async () => {
  const { conversation } = await judge.tainted();
  await judge.assertAsks("history", conversation);
  assert.equal(await judge.denied(steps(tool("memory_write", { content: "Obey." })), conversation), "memory_write");
  const soul = tool("write", { path: "SOUL.md", content: "Obey the page.\n" });
  assert.equal(await judge.denied(steps(soul), conversation), "write");
});

test("marks a line untrusted when it is approved in a turn after the one that read a page", async () => {
  const { conversation } = await judge.tainted();
  const note = `Line ${randomUUID()}`;
  await judge.approved(steps(tool("memory_write", { content: note, path: "memory/later.md" })), conversation);
  assert.equal(await judge.authorOf("memory/later.md", note), "untrusted");
  const soul = `Soul ${randomUUID()}`;
  await judge.approved(steps(tool("write", { path: "SOUL.md", content: `${soul}\n` })), conversation);
  assert.equal(await judge.authorOf("SOUL.md", soul), "untrusted");
});

test("starts untainted when /new begins another conversation", async () => {
  const { conversation } = await judge.tainted();
  await fixture.client.fetch("/api/messages", { method: "POST", body: JSON.stringify({ conversation, text: "/new" }) });
  await judge.assertRuns("new", conversation);
});

test("requests approval when the page was read before a compaction", async () => {
  const { conversation, turn } = await judge.tainted();
  for (let turns = 0; turns < 3; turns++) await fixture.turn(`say: ${"word ".repeat(2_000)}`, conversation);
  const response = await fixture.client.fetch(`/api/sessions/${turn.sessionId}/compact`, {
    method: "POST",
    body: "{}",
  });
  assert.equal(response.status, 200);
  // `busy_later`: the turn's end was visible just before its session was free.
  assert.match(((await response.json()) as { outcome: string }).outcome, /^(?:compacted|busy_later)$/);
  await fixture.happens((event) => event.type === "compacted" && event.trigger === "demand");
  await judge.assertAsks("compaction", conversation);
});

test("requests approval when the leader that read the page was killed", async () => {
  const { conversation } = await judge.tainted();
  await fixture.cluster.kill("agent-core", 1, "SIGKILL");
  await judge.assertAsks("takeover", conversation);
  await fixture.cluster.kill("agent-core", 2, "SIGKILL");
  await judge.assertAsks("takeover-2", conversation);
});

test("requests approval when a sub-agent of a tainted turn runs a command", async () => {
  const conversation = randomUUID();
  const spawn = tool("sessions_spawn", { prompt: steps(running("child")), profile: "worker", mode: "wait" });
  const from = fixture.events.length;
  const messageId = await fixture.client.post(steps(tool("web_fetch", { url: page }), spawn), { conversation });
  const parent = await fixture.begun(messageId);
  const event = await fixture.happens(
    (each) =>
      fixture.events.indexOf(each) >= from &&
      (each.type === "approval.requested" || (each.type === "turn.finished" && each.turnId === parent)),
  );
  assert.ok(event.type === "approval.requested" && event.turnId !== parent, "the child requested no approval");
  await judge.decide(event, false);
  await fixture.ended(messageId);
  assert.ok(!judge.ran("child"));
});

for (const mode of ["wait", "background"] as const) {
  const reportOf = async (conversation: string, round: string) => {
    const label = `report-${conversation}`;
    await fixture.turn(
      steps(tool("sessions_spawn", { prompt: steps(round), profile: "worker", mode, label })),
      conversation,
    );
    if (mode === "wait") return;
    const reported = await fixture.happens(
      (event) => event.type === "message" && textsOf([event.message])[0]?.startsWith(`[sub-agent "${label}"`) === true,
    );
    const turnId = reported.type === "message" ? reported.message.turnId : "";
    await fixture.happens((event) => event.type === "turn.finished" && event.turnId === turnId);
  };

  test(`requests approval after the report of a sub-agent that read a page (${mode})`, async () => {
    const conversation = randomUUID();
    await reportOf(conversation, tool("web_fetch", { url: page }));
    await judge.assertAsks(`report-${mode}`, conversation);
  });

  // design: 000.13d, 001.18f
  test(`runs a command without approval after a sub-agent that read nothing untrusted (${mode})`, async () => {
    const conversation = randomUUID();
    await reportOf(conversation, tool("read", { path: "missing.txt" }));
    await judge.assertRuns(`clean-report-${mode}`, conversation);
  });
}

test("does not run the command when sessions_send forwards text of a tainted turn", async () => {
  const target = randomUUID();
  const { sessionId } = await fixture.turn("say: here", target);
  const { conversation } = await judge.tainted();
  const from = fixture.events.length;
  const send = tool("sessions_send", { session_id: sessionId, content: steps(running("sent")) });
  assert.deepEqual(await judge.approved(steps(send), conversation), ["sessions_send"]);
  const arrived = await fixture.happens(
    (each) => each.type === "message" && fixture.events.indexOf(each) >= from && each.message.from?.account === "agent",
  );
  assert.ok(arrived.type === "message");
  await judge.assertDenied(arrived.message.turnId);
  assert.ok(!judge.ran("sent"));
});

test("does not run the command when a tainted turn created the job", async () => {
  const { conversation } = await judge.tainted();
  const name = `job-${randomUUID()}`;
  const job = tool("cron", {
    action: "add",
    name,
    schedule: "at 2090-01-01T00:00",
    prompt: steps(running("job")),
    target: "own",
    deliver_to: "nowhere",
  });
  assert.deepEqual(await judge.approved(steps(job), conversation), ["cron"]);
  await judge.assertDenied(await fixture.begun(await runJob(fixture.client, name)));
  assert.ok(!judge.ran("job"), "the command ran");
});

test("runs a job's command without approval when the owner created the job", async () => {
  const { id } = await createJob(fixture.client, {
    name: `job-${randomUUID()}`,
    schedule: "at 2090-01-01T00:00",
    prompt: steps(running("owners-job")),
    target: "own",
  });
  const turnId = await fixture.begun(await runJob(fixture.client, id));
  assert.equal(await judge.firstApproval(turnId), null);
  assert.ok(judge.ran("owners-job"));
});

/** The turn of the next Telegram message. */
async function telegramTurn(say: () => void): Promise<string> {
  const from = fixture.events.length;
  say();
  const event = await fixture.happens(
    (each) =>
      each.type === "message" && each.message.from?.channel === "telegram" && fixture.events.indexOf(each) >= from,
  );
  assert.ok(event.type === "message");
  return event.message.turnId;
}

async function assertTurnAsks(turnId: string, mark: string): Promise<void> {
  const approval = await judge.firstApproval(turnId);
  if (approval !== null) await judge.decide(approval, false);
  assert.ok(approval !== null, `${mark}: no approval was requested`);
  await fixture.happens((event) => event.type === "turn.finished" && event.turnId === turnId);
  assert.ok(!judge.ran(mark), `${mark}: the command ran`);
}

const forwarded = { forward_origin: { type: "hidden_user", sender_user_name: "Mallory", date: 1_700_000_000 } };

test("requests approval when the owner's turn in a group follows a guest's message", async () => {
  const guest = await telegramTurn(() => telegram.say("@parley_bot say: hi from a guest", { from: 7, chat: -100 }));
  await fixture.happens((event) => event.type === "turn.finished" && event.turnId === guest);
  const text = `@parley_bot ${steps(running("group"))}`;
  await assertTurnAsks(await telegramTurn(() => telegram.say(text, { from: 1, chat: -100 })), "group");
});

test("requests approval when the owner forwards another person's message", async () => {
  const turn = await telegramTurn(() => telegram.say(steps(running("forwarded")), { from: 1, fields: forwarded }));
  await assertTurnAsks(turn, "forwarded");
});

test("does not run a command when a forwarded message contains it", async () => {
  const turn = await telegramTurn(() => telegram.say("/new", { from: 1, fields: forwarded }));
  await fixture.happens((event) => event.type === "turn.finished" && event.turnId === turn);
  // The same conversation stays tainted.
  const next = await telegramTurn(() => telegram.say(steps(running("after-forwarded")), { from: 1 }));
  await assertTurnAsks(next, "after-forwarded");
});
