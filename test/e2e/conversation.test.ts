// Conversations with tools over every HTTP interface, on four real processes, with a model that has Anthropic's wire format and
// rejects the requests that the real API would reject.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { pollUntil } from "@parley/testing/until";
import { SessionEventSchema, type SessionEvent } from "@parley/contracts";
import { apiClient, Cleanup, startTestCluster, type ApiClient, type TestCluster } from "@parley/testing";
import OpenAI from "openai";
import { z } from "zod";

const cleanup = new Cleanup();
let cluster: TestCluster;
let client: ApiClient;

before(async () => {
  cluster = await startTestCluster(cleanup, {
    processes: [],
    model: true,
    settings: '[session]\npolicy = "per_conversation"\n',
  });
  client = apiClient(cluster.httpUrls, cluster.token);
});
after(async () => {
  assert.deepEqual(cluster.strict?.refusals, [], "the real API would have refused these requests");
  await cleanup[Symbol.asyncDispose]();
});

/** The test model and the record of its requests. Fails the test when the cluster was not started with a model. */
function testModel() {
  assert.ok(cluster.scripted !== undefined && cluster.strict !== undefined);
  return { model: cluster.scripted, strict: cluster.strict };
}

describe("OpenAI client", () => {
  const openai = () => new OpenAI({ baseURL: `${cluster.httpUrl}/v1`, apiKey: cluster.token, maxRetries: 0 });

  test("streams an answer in chunks, with usage at the end, when the turn used tools", async () => {
    const stream = await openai().chat.completions.create({
      model: "parley",
      user: "openai-stream",
      stream: true,
      stream_options: { include_usage: true },
      messages: [
        {
          role: "user",
          content:
            'tool: write {"path":"a.txt","content":"forty-two"}\nthen\ntool: read {"path":"a.txt"}\nthen\nsay: the file says forty-two',
        },
      ],
    });
    const chunks: string[] = [];
    let finishReason: string | null | undefined;
    let totalTokens = 0;
    for await (const chunk of stream) {
      chunks.push(chunk.choices[0]?.delta.content ?? "");
      finishReason ??= chunk.choices[0]?.finish_reason;
      totalTokens += chunk.usage?.total_tokens ?? 0;
    }
    assert.equal(chunks.join("").trim(), "the file says forty-two");
    assert.ok(chunks.filter((chunk) => chunk !== "").length > 1, "the answer was sent as one chunk");
    assert.equal(finishReason, "stop");
    assert.ok(totalTokens > 0);
    assert.equal(await readFile(join(cluster.home, "workspace", "a.txt"), "utf8"), "forty-two");
  });

  test("continues a conversation when the second question refers to the first", async () => {
    const ask = (content: string) =>
      openai().chat.completions.create({
        model: "parley",
        user: "openai-memory",
        messages: [{ role: "user", content }],
      });
    await ask("say: one");
    const second = await ask("say: two");
    assert.equal(second.choices[0]?.message.content, "two");
    const lastRequest = testModel().strict.requests.at(-1);
    assert.deepEqual(
      lastRequest?.messages.map((message: { role: string }) => message.role),
      ["user", "assistant", "user"],
    );
  });

  test("lists the models", async () => {
    const models = await openai().models.list();
    assert.ok(models.data.length > 0);
  });
});

test("answers parallel tool calls in call order when curl is the client", async () => {
  const body = {
    model: "parley",
    user: "curl",
    messages: [
      { role: "user", content: 'tool: ls {}\ntool: glob {"pattern":"**/*"}\ntool: ls {"path":"."}\nthen\nsay: looked' },
    ],
  };
  const { stdout } = await promisify(execFile)("curl", [
    "-sS",
    "-H",
    `Authorization: Bearer ${cluster.token}`,
    "-H",
    "Content-Type: application/json",
    "-d",
    JSON.stringify(body),
    `${cluster.httpUrl}/v1/chat/completions`,
  ]);
  const answer = z
    .object({ choices: z.array(z.object({ message: z.object({ content: z.string() }) })) })
    .parse(JSON.parse(stdout));
  assert.equal(answer.choices[0]?.message.content, "looked");
  const messages = testModel().strict.requests.at(-1)?.messages ?? [];
  const callIds = messages[1]?.content.flatMap((block) => (block.type === "tool_use" ? [block.id] : []));
  const resultIds = messages[2]?.content.flatMap((block) =>
    block.type === "tool_result" ? [(block as { tool_use_id: string }).tool_use_id] : [],
  );
  assert.equal(callIds?.length, 3);
  assert.deepEqual(resultIds, callIds);
});

// design: 003.43, 004.18c
test("streams text, tools and the end over a WebSocket, and resumes by sequence number", async () => {
  // Uses an existing session: deltas are sent only live, so a client can miss those of a session that is being created.
  await client.ask("say: hello", "ws");
  // The sequence number of the last event of this turn.
  const afterSeq = 3;
  const first = await connect();
  const id = randomUUID();
  first.send({ type: "subscribe", session: "http:default:ws", after: afterSeq });
  await first.subscribed;
  // The reply after the call waits behind its first text: text that arrives after its stored message is not sent.
  const [, release] = [testModel().strict.holdNext(), testModel().strict.holdNext()];
  first.send({ type: "message", id, conversation: "ws", text: "think: let me see\ntool: ls {}\nthen\nsay: seen" });
  await first.until((event) => event.type === "text.delta");
  release();
  const events = await first.until((event) => event.type === "turn.finished");
  const types = events.map((event) => event.type);
  for (const type of [
    "turn.started",
    "reasoning.delta",
    "tool.started",
    "tool.finished",
    "text.delta",
    "turn.finished",
  ] as const) {
    assert.ok(types.includes(type), `${type} is missing from ${types.join()}`);
  }
  const storedEvents = events.filter((event) => "seq" in event);
  first.close();

  const second = await connect();
  second.send({ type: "subscribe", session: "http:default:ws", after: afterSeq + 1 });
  const replayed = await second.until((event) => event.type === "turn.finished");
  assert.deepEqual(
    replayed.filter((event) => "seq" in event),
    storedEvents.filter((event) => event.seq > afterSeq + 1),
  );
  second.close();
});

describe("model errors and interruptions", () => {
  test("sends thinking back unchanged, with its signature", async () => {
    await client.ask("think: a secret thought\ntool: ls {}\nthen\nsay: done", "thinking");
    const lastRequest = testModel().strict.requests.at(-1);
    const thinkingBlock = lastRequest?.messages[1]?.content[0];
    assert.deepEqual(thinkingBlock, {
      type: "thinking",
      thinking: "a secret thought",
      signature: Buffer.from("a secret thought").toString("base64"),
    });
  });

  test("repeats the call and answers when the model is overloaded (529)", async () => {
    const requestsBefore = testModel().strict.requests.length;
    testModel().model.failNext({ status: 529 });
    assert.equal(await client.ask("say: recovered", "overload"), "recovered");
    assert.equal(testModel().strict.requests.length, requestsBefore + 2);
  });

  test("repeats the call and discards the partial answer when the stream breaks", async () => {
    testModel().model.failNext({ cutAfterChunks: 4 });
    const text = "a long answer that is certainly cut somewhere in its middle";
    assert.equal(await client.ask(`say: ${text}`, "cut"), text);
    const session = await client.fetch("/api/sessions/http:default:cut");
    const { sessionId } = z
      .object({ session: z.object({ sessionId: z.string() }) })
      .parse(await session.json()).session;
    const messages = await client.fetch(`/api/sessions/${sessionId}/messages?after=0`);
    const roles = z.object({ messages: z.array(z.object({ role: z.string() })) }).parse(await messages.json());
    assert.deepEqual(
      roles.messages.map((message) => message.role),
      ["user", "assistant"],
    );
  });

  test("tells the person what to do when the provider refuses the key", async () => {
    testModel().model.failNext({ status: 401 });
    await assert.rejects(client.ask("say: never", "key"), /502.*ANTHROPIC_API_KEY/);
  });

  test("returns an error to the model and continues when a tool or its arguments are invalid", async () => {
    assert.equal(await client.ask('tool: teleport {}\ntool: read {"pfad":1}\nthen\nsay: I see', "unknown"), "I see");
    const results = testModel().strict.requests.at(-1)?.messages[2]?.content ?? [];
    assert.match(JSON.stringify(results[0]), /exec.*glob.*grep/);
    assert.match(JSON.stringify(results[1]), /path/);
  });
});

// design: 002.2
test("ends a running turn and its tool immediately when the person sends /stop", async () => {
  const messageId = await client.post('say: I am looking.\ntool: exec {"command":"sleep 600","wait_seconds":120}', {
    conversation: "stop",
  });
  await pollUntil(async () => (await client.messageState(messageId)).turn?.modelSteps === 1, "the first step");
  const response = await client.fetch("/api/messages", {
    method: "POST",
    body: JSON.stringify({ conversation: "stop", text: "/stop" }),
  });
  assert.equal(response.status, 200);
  // Long before the command ends.
  const turn = await client.settled(messageId);
  assert.equal(turn.state, "cancelled");
  const messages = await client.fetch(`/api/sessions/${turn.sessionId}/messages?after=0`);
  const occurrences = (await messages.text()).split("I am looking.").length - 1;
  // Once in the user's message, once in the model's text before the stop.
  assert.equal(occurrences, 2, "the text before the tool call is stored once");
});

/** A WebSocket connection to the gateway. */
interface Connection {
  send(frame: object): void;
  /** Resolves when the first subscription is active. */
  subscribed: Promise<void>;
  /** Collects the session's events until one matches. */
  until(matches: (event: SessionEvent) => boolean): Promise<SessionEvent[]>;
  close(): void;
}

async function connect(): Promise<Connection> {
  const socket = new WebSocket(`${cluster.httpUrl.replace("http", "ws")}/api/ws`, [`parley.bearer.${cluster.token}`]);
  const events: SessionEvent[] = [];
  const listeners = new Set<() => void>();
  const subscribed = Promise.withResolvers<void>();
  socket.addEventListener("message", (message) => {
    const frame: unknown = JSON.parse(String(message.data));
    if (typeof frame === "object" && frame !== null && "type" in frame && frame.type === "subscribed")
      subscribed.resolve();
    const event = SessionEventSchema.safeParse(
      typeof frame === "object" && frame !== null && "event" in frame ? frame.event : frame,
    );
    if (!event.success) return;
    events.push(event.data);
    for (const listener of listeners) listener();
  });
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", () => reject(new Error("the WebSocket was refused")));
  });
  return {
    send: (frame) => socket.send(JSON.stringify(frame)),
    subscribed: subscribed.promise,
    until: (matches) =>
      new Promise((resolve) => {
        const resolveIfMatched = () => {
          if (!events.some(matches)) return;
          listeners.delete(resolveIfMatched);
          resolve(events);
        };
        listeners.add(resolveIfMatched);
        resolveIfMatched();
      }),
    close: () => socket.close(),
  };
}
