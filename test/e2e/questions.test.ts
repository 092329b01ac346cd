// The agent asks a person and waits for the answer: it holds no resources meanwhile, and the question survives a restart.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { apiClient, Cleanup, startTestCluster, type ApiClient, type TestCluster } from "@parley/testing";
import { pollUntil } from "@parley/testing/until";
import { Client } from "pg";
import { z } from "zod";

const cleanup = new Cleanup();
let cluster: TestCluster;
let client: ApiClient;

before(async () => {
  cluster = await startTestCluster(cleanup, {
    processes: ["agent-core"],
    replicas: { "agent-core": 2 },
    settings:
      '[session]\npolicy = "per_conversation"\n[permissions]\ncontained = "ask"\n[queue]\nmode = "queue"\n[agent]\nquestion_seconds = 60\n',
  });
  client = apiClient([cluster.httpUrl], cluster.token);
});
after(() => cleanup[Symbol.asyncDispose]());

async function query(text: string, values: unknown[]): Promise<void> {
  const sql = new Client({ connectionString: cluster.databaseUrl });
  await sql.connect();
  try {
    await sql.query(text, values);
  } finally {
    await sql.end();
  }
}

const asking = (question: object) => `tool: ask_user ${JSON.stringify(question)}\nthen\nsay: thank you`;
const Sessions = z.object({ sessions: z.array(z.object({ key: z.string(), parked: z.boolean() })) });

async function whenParked(conversation: string): Promise<void> {
  await pollUntil(async () => {
    const response = await client.fetch("/api/sessions");
    const { sessions } = Sessions.parse(await response.json());
    return sessions.some(({ key, parked }) => key.endsWith(`:${conversation}`) && parked);
  }, "a parked turn");
}

async function results(sessionId: string): Promise<string> {
  const response = await client.fetch(`/api/sessions/${sessionId}/messages?after=0`);
  return response.text();
}

// design: 002.32
test("takes a person's next message as the answer, without a turn of its own", async () => {
  const conversation = randomUUID();
  const asked = await client.post(asking({ question: "Tea or coffee?" }), { conversation });
  await whenParked(conversation);
  const answered = await client.post("coffee, please", { conversation });
  const turn = await client.settled(asked);
  assert.equal(turn.text, "thank you");
  assert.equal((await client.settled(answered)).turnId, turn.turnId);
  assert.match(await results(turn.sessionId), /The person answered: coffee, please/);
});

// design: 002.32, 003.18
test("chooses the option with the number that a person sends", async () => {
  const conversation = randomUUID();
  const asked = await client.post(asking({ question: "Which?", options: ["red", "green"] }), { conversation });
  await whenParked(conversation);
  await client.post("2", { conversation });
  const turn = await client.settled(asked);
  assert.match(await results(turn.sessionId), /The person answered: green/);
});

// design: 002.36
test("shows a question of any conversation to a stream client, whose answer continues the turn", async () => {
  const conversation = randomUUID();
  const address = `${cluster.httpUrl.replace(/^http/, "ws")}/api/ws?format=stream&conversation=elsewhere&all=true`;
  const socket = new WebSocket(address, ["parley.v1", `parley.bearer.${cluster.token}`]);
  const Question = z.object({
    event: z.literal("question"),
    session: z.string().endsWith(conversation),
    data: z.object({ question_id: z.string(), question: z.string(), options: z.array(z.string()) }),
  });
  const { promise: shown, resolve } = Promise.withResolvers<z.infer<typeof Question>["data"]>();
  socket.addEventListener("message", ({ data }) => {
    const frame = Question.safeParse(JSON.parse(String(data)));
    if (frame.success) resolve(frame.data.data);
  });
  await once(socket, "open");
  const asked = await client.post(asking({ question: "Which colour?", options: ["red"] }), { conversation });
  const { question_id, ...question } = await shown;
  assert.deepEqual(question, { question: "Which colour?", options: ["red"] });
  socket.send(JSON.stringify({ type: "answer", question_id, text: "a dark blue" }));
  const turn = await client.settled(asked);
  assert.match(await results(turn.sessionId), /The person answered: a dark blue/);
  socket.close();
});

// design: 002.36
test("decides an approval with the `answer` of a stream client: yes, no or always, and refuses other words", async () => {
  const conversation = randomUUID();
  const address = `${cluster.httpUrl.replace(/^http/, "ws")}/api/ws?format=stream&conversation=${conversation}`;
  const socket = new WebSocket(address, ["parley.v1", `parley.bearer.${cluster.token}`]);
  const Approval = z.object({
    event: z.literal("approval"),
    data: z.object({ question_id: z.string(), tool: z.literal("write"), options: z.array(z.string()) }),
  });
  const words = ["perhaps", "No", "yes", "always"];
  const errors: string[] = [];
  const asked: string[] = [];
  const answer = (question_id: string) =>
    socket.send(JSON.stringify({ type: "answer", question_id, text: words.shift() }));
  socket.addEventListener("message", ({ data }) => {
    const frame: unknown = JSON.parse(String(data));
    const approval = Approval.safeParse(frame);
    const error = z.object({ type: z.literal("error"), message: z.string() }).safeParse(frame);
    if (error.success) {
      errors.push(error.data.message);
      answer(asked.at(-1) ?? "");
    }
    if (!approval.success) return;
    const { question_id, options } = approval.data.data;
    assert.deepEqual(options, ["yes", "always", "no"]);
    asked.push(question_id);
    answer(question_id);
  });
  await once(socket, "open");
  const write = 'tool: write {"path":"answered.txt","content":"x"}';
  const script = [write, write, write, write, "say: over"].join("\nthen\n");
  const turn = await client.settled(await client.post(script, { conversation }));
  assert.deepEqual([turn.text, errors, words], ["over", ["text: must be one of yes, always, no"], []]);
  assert.equal(asked.length, 3, "the fourth call needs no approval");
  const { messages } = z
    .object({ messages: z.array(z.object({ parts: z.array(z.looseObject({ type: z.string() })) })) })
    .parse(JSON.parse(await results(turn.sessionId)));
  const isError = messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === "tool_result" ? [part["isError"]] : [])),
  );
  assert.deepEqual(isError, [true, false, false, false]);
  socket.close();
});

test("tells a stream client once that its /stop ended the turn that asks", async () => {
  const conversation = randomUUID();
  const address = `${cluster.httpUrl.replace(/^http/, "ws")}/api/ws?format=stream&conversation=${conversation}`;
  const socket = new WebSocket(address, ["parley.v1", `parley.bearer.${cluster.token}`]);
  const frames: { type: string; event?: string; content?: string; msg_id?: string }[] = [];
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  socket.addEventListener("message", ({ data }) => {
    const frame = JSON.parse(String(data)) as (typeof frames)[number];
    frames.push(frame);
    if (frame.event === "question") socket.send(JSON.stringify({ type: "message", id: "stop", text: "/stop" }));
    const isAnswered = frames.some(({ msg_id: id }) => id === "stop");
    if (isAnswered && frames.some(({ event }) => event === "thinking_finished")) resolve();
  });
  await once(socket, "open");
  socket.send(JSON.stringify({ type: "message", text: asking({ question: "May I?" }) }));
  await ended;
  const responses = frames.flatMap(({ type, content }) => (type === "response" ? [content] : []));
  assert.deepEqual(responses, ["Stopped."]);
  socket.close();
});

test("keeps an open question when the leader dies", async () => {
  const conversation = randomUUID();
  const asked = await client.post(asking({ question: "Still there?" }), { conversation });
  await whenParked(conversation);
  await cluster.kill("agent-core", 1, "SIGKILL");
  await cluster.kill("agent-core", 2, "SIGKILL");
  await client.post("yes", { conversation });
  const turn = await client.settled(asked);
  assert.equal(turn.text, "thank you");
  assert.match(await results(turn.sessionId), /The person answered: yes/);
});

test("does not count the wait for a late answer as time of the turn", async () => {
  const waiting = async (conversation: string) => {
    const asked = await client.post(asking({ question: "And now?" }), { conversation });
    await whenParked(conversation);
    return asked;
  };
  const [patient, slow] = [randomUUID(), randomUUID()];
  const [asked, late] = [await waiting(patient), await waiting(slow)];
  // Both began three hours ago, above the limit of two hours; one asked immediately, the other only now.
  await query(
    `UPDATE parley.turns SET started_at = started_at - interval '3 hours' WHERE session_id IN
       (SELECT id FROM parley.sessions WHERE key LIKE ANY ($1))`,
    [[`%:${patient}`, `%:${slow}`]],
  );
  await query(
    `UPDATE parley.questions SET asked_at = asked_at - interval '3 hours' WHERE session_id IN
       (SELECT id FROM parley.sessions WHERE key LIKE $1)`,
    [`%:${patient}`],
  );
  await client.post("yes", { conversation: patient });
  await client.post("yes", { conversation: slow });
  assert.equal((await client.settled(asked)).text, "thank you");
  assert.match((await client.settled(late)).text ?? "", /this took 180 minutes, the limit for one request/);
});

test("ends a turn that waits for an answer when /stop arrives", async () => {
  const conversation = randomUUID();
  const asked = await client.post(asking({ question: "May I?" }), { conversation });
  await whenParked(conversation);
  await client.fetch("/api/messages", { method: "POST", body: JSON.stringify({ conversation, text: "/stop" }) });
  assert.equal((await client.settled(asked)).state, "cancelled");
});
