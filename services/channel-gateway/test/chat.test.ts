// The OpenAI-compatible API, on a real store.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import OpenAI from "openai";
import { Cleanup, startTestNats } from "@parley/testing";
import { startGatewayStack, startReplica, token, type GatewayStack, type Replica } from "./support/stack.ts";

let stack: GatewayStack;
let gateway: Replica;
let client: OpenAI;
/** Requested at the start, because a refusal takes as long as a message may wait for the store. */
let refusedWithoutStore: Promise<Response[]>;

before(async () => {
  stack = await startGatewayStack();
  gateway = await stack.gateway();
  refusedWithoutStore = refusalsWithoutStore();
  // Awaited by its own test.
  refusedWithoutStore.catch(() => undefined);
  client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: token, maxRetries: 0 });
});
after(() => stack[Symbol.asyncDispose]());

const say = (content: string) => [{ role: "user" as const, content }];

interface Refusal {
  error: { code: string; message: string; type: string; param: string | null };
}

test("returns the whole answer to the OpenAI client", async () => {
  const answer = await client.chat.completions.create({ model: "any", messages: say("hello") });
  assert.equal(answer.choices[0]?.message.content, "You said: hello");
  assert.equal(answer.choices[0]?.finish_reason, "stop");
  assert.equal(answer.model, "any");
  assert.equal(answer.usage?.total_tokens, 5);
});

test("streams the answer to the OpenAI client, with usage on request", async () => {
  const stream = await client.chat.completions.create({
    model: "parley",
    messages: say("stream"),
    stream: true,
    stream_options: { include_usage: true },
  });
  const pieces: string[] = [];
  let usage = 0;
  let finish: string | null | undefined;
  for await (const chunk of stream) {
    const piece = chunk.choices[0]?.delta.content;
    if (piece !== undefined && piece !== null && piece !== "") pieces.push(piece);
    finish = chunk.choices[0]?.finish_reason ?? finish;
    usage = chunk.usage?.total_tokens ?? usage;
  }
  assert.deepEqual(pieces, ["You said: ", "stream"]);
  assert.equal(finish, "stop");
  assert.equal(usage, 5);
});

test("streams the whole answer when all deltas are lost", async () => {
  stack.agent.lose = (event) => event.type === "text.delta";
  try {
    const stream = await client.chat.completions.create({ model: "parley", messages: say("lost"), stream: true });
    let text = "";
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
    assert.equal(text, "You said: lost");
  } finally {
    stack.agent.lose = () => false;
  }
});

test("reads the answer from the store when all events are lost", async () => {
  stack.agent.lose = () => true;
  try {
    const answer = await client.chat.completions.create({ model: "parley", messages: say("silence") });
    assert.equal(answer.choices[0]?.message.content, "You said: silence");
  } finally {
    stack.agent.lose = () => false;
  }
});

test("passes instructions and earlier messages to the agent before the text of the last message", async () => {
  await client.chat.completions.create({
    model: "parley",
    messages: [
      { role: "system", content: "be brief" },
      { role: "user", content: "first" },
      { role: "assistant", content: "yes" },
      {
        role: "user",
        content: [
          { type: "text", text: "one" },
          { type: "text", text: "two" },
        ],
      },
    ],
  });
  assert.equal(
    stack.agent.heard.at(-1),
    [
      "[Instructions of the program that sent this message]\nbe brief",
      "[Earlier messages of this conversation, sent by the calling program]\nuser: first\nassistant: yes",
      "one\ntwo",
    ].join("\n\n"),
  );
});

test("answers a repeated Idempotency-Key and passes the message to the agent once", async () => {
  const before = stack.agent.heard.length;
  const once = () =>
    client.chat.completions.create(
      { model: "parley", messages: say("only once"), user: "keys" },
      { headers: { "Idempotency-Key": "k-1" } },
    );
  const [first, second] = await Promise.all([once(), once()]);
  const third = await once();
  assert.deepEqual(
    [first, second, third].map((each) => each.choices[0]?.message.content),
    Array.from({ length: 3 }, () => "You said: only once"),
  );
  assert.equal(first.id, third.id);
  assert.equal(stack.agent.heard.length, before + 1);
});

test("refuses a reused Idempotency-Key with a different text, which clients do not retry", async () => {
  let calls = 0;
  const persistent = client.withOptions({
    maxRetries: 1,
    fetch: (...request) => {
      calls++;
      return fetch(...request);
    },
  });
  const ask = (text: string, stream: boolean) =>
    persistent.chat.completions.create(
      { model: "parley", messages: say(text), user: "keys", stream },
      { headers: { "Idempotency-Key": "k-2" } },
    );
  await ask("the first text", false);
  const before = stack.agent.heard.length;
  for (const stream of [false, true]) {
    await assert.rejects(ask("a different text", stream), { status: 409, code: "idempotency_key_reused" });
  }
  assert.equal(calls, 3);
  assert.equal(stack.agent.heard.length, before);
});

test("preserves lone surrogates, NUL and emoji", async () => {
  const text = "a\ud800b\udfffc\u0000d😀";
  const answer = await client.chat.completions.create({ model: "parley", messages: say(text) });
  assert.equal(answer.choices[0]?.message.content, `You said: ${text}`);
  const stream = await client.chat.completions.create({ model: "parley", messages: say(text), stream: true });
  let streamed = "";
  for await (const chunk of stream) streamed += chunk.choices[0]?.delta.content ?? "";
  assert.equal(streamed, `You said: ${text}`);
});

test("reports a failed turn as an error that clients do not retry", async () => {
  stack.agent.script = () => ({ deltas: [], text: "The model's key is wrong.", exitReason: "error" });
  try {
    const eager = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: token, maxRetries: 3 });
    const before = stack.agent.heard.length;
    await assert.rejects(eager.chat.completions.create({ model: "parley", messages: say("x") }), (error: unknown) => {
      assert.ok(error instanceof OpenAI.APIError);
      assert.equal(error.status, 502);
      assert.match(error.message, /The model's key is wrong/);
      return true;
    });
    assert.equal(stack.agent.heard.length, before + 1);
    const stream = await client.chat.completions.create({ model: "parley", messages: say("x"), stream: true });
    await assert.rejects(async () => {
      for await (const _ of stream);
    }, /The model's key is wrong/);
  } finally {
    stack.agent.script = (said) => ({ deltas: ["You said: ", said] });
  }
});

test("continues the turn when the caller disconnects", async () => {
  const began = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  stack.agent.script = async (said) => {
    began.resolve();
    await goOn.promise;
    return { deltas: ["Late: ", said] };
  };
  const headers = { "Idempotency-Key": "gone" };
  try {
    const controller = new AbortController();
    const call = client.chat.completions.create(
      { model: "parley", messages: say("wait for me"), user: "gone" },
      { headers, signal: controller.signal },
    );
    await began.promise;
    controller.abort();
    await assert.rejects(call);
    goOn.resolve();
    const again = await client.chat.completions.create(
      { model: "parley", messages: say("wait for me"), user: "gone" },
      { headers },
    );
    assert.equal(again.choices[0]?.message.content, "Late: wait for me");
  } finally {
    stack.agent.script = (said) => ({ deltas: ["You said: ", said] });
  }
});

test("answers commands without passing them to the agent", async () => {
  const before = stack.agent.heard.length;
  const ask = async (text: string) => {
    const answer = await client.chat.completions.create({ model: "parley", messages: say(text) });
    return answer.choices[0]?.message.content ?? "";
  };
  assert.match(await ask("/nonsense now"), /Unknown command \/nonsense[^]*\/stop/);
  assert.match(await ask("/help"), /\/status/);
  assert.match(await ask("/status"), /Model: test-1[^]*Conversation main/);
  assert.equal(await ask("/stop"), "Nothing is running.");
  const stream = await client.chat.completions.create({ model: "parley", messages: say("/help"), stream: true });
  let text = "";
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
  assert.match(text, /\/stop/);
  assert.equal(stack.agent.heard.length, before);
  await ask("/etc/hosts is a file");
  assert.equal(stack.agent.heard.at(-1), "/etc/hosts is a file");
});

test("records /stop in the store and notifies the leader immediately", async () => {
  const began = Promise.withResolvers<string>();
  const goOn = Promise.withResolvers<void>();
  stack.agent.script = async (said, { turnId }) => {
    began.resolve(turnId);
    await goOn.promise;
    return { deltas: [said] };
  };
  try {
    const running = client.chat.completions.create({ model: "parley", messages: say("long"), user: "stop" });
    const turnId = await began.promise;
    const waiting = assert.rejects(
      client.chat.completions.create({ model: "parley", messages: say("behind it"), user: "stop" }),
      (error) => error instanceof OpenAI.ConflictError && error.code === "turn_stopped",
    );
    await pollUntil(async () => {
      const { session } = await gateway.json<{ session: { queued: number } }>("/api/sessions/main");
      return session.queued === 1;
    }, "the queued message");
    const answer = await client.chat.completions.create({ model: "parley", messages: say("/stop") });
    assert.equal(answer.choices[0]?.message.content, "Stopped. 1 queued message was cancelled.");
    const { cancelRequested } = await gateway.json<{ cancelRequested: boolean }>(`/api/turns/${turnId}`);
    assert.equal(cancelRequested, true);
    assert.equal(stack.agent.cancelled.length, 1);
    await waiting;
    goOn.resolve();
    await running;
  } finally {
    goOn.resolve();
    stack.agent.script = (said) => ({ deltas: ["You said: ", said] });
  }
});

test("refuses unsupported fields by name and ignores model tuning", async () => {
  const refuse = async (more: object) => {
    const response = await gateway.call("/v1/chat/completions", { body: { messages: say("x"), ...more } });
    assert.equal(response.status, 400, JSON.stringify(more));
    return ((await response.json()) as Refusal).error;
  };
  assert.equal((await refuse({ n: 2 })).param, "n");
  assert.equal((await refuse({ tools: [{ type: "function" }] })).param, "tools");
  assert.equal((await refuse({ functions: [{}] })).param, "functions");
  assert.equal((await refuse({ response_format: { type: "grammar" } })).param, "response_format");
  assert.equal((await refuse({ messages: [] })).param, "messages");
  assert.equal((await refuse({ messages: [{ role: "assistant", content: "x" }] })).param, "messages");
  const image = await refuse({
    messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "x" } }] }],
  });
  assert.equal(image.param, "messages.0.content.0");
  assert.equal(image.type, "invalid_request_error");
  const tuned = await gateway.call("/v1/chat/completions", {
    body: { messages: say("x"), temperature: 0.2, top_p: 1, seed: 7, tools: [], n: 1, some_future_field: true },
  });
  assert.equal(tuned.status, 200);
});

test("refuses a 300 KiB message and a body above its limit, and stays available", async () => {
  const large = await gateway.call("/v1/chat/completions", { body: { messages: say("x".repeat(300 * 1024)) } });
  assert.equal(large.status, 413);
  assert.match(
    ((await large.json()) as Refusal).error.message,
    /at most 262144\. Attach it as a file, or send it in parts$/,
  );
  const huge = await gateway.call("/api/messages", { body: { text: "x".repeat(2 * 1024 * 1024) } });
  assert.equal(huge.status, 413);
  assert.equal(((await huge.json()) as Refusal).error.code, "body_too_large");
  const answer = await client.chat.completions.create({ model: "parley", messages: say("still there?") });
  assert.equal(answer.choices[0]?.message.content, "You said: still there?");
});

test("lists one model", async () => {
  const list = await client.models.list();
  assert.deepEqual(
    list.data.map(({ id }) => id),
    ["parley"],
  );
  assert.equal((await client.models.retrieve("parley")).id, "parley");
  await assert.rejects(client.models.retrieve("gpt-4"), /404/);
});

test("responds 503 with Retry-After when the store is unavailable", async () => {
  const refused = await refusedWithoutStore;
  assert.equal(refused.length, 3);
  for (const response of refused) {
    assert.equal(response.status, 503);
    assert.ok(Number(response.headers.get("retry-after")) > 0);
    const { error } = (await response.json()) as Refusal;
    assert.equal(error.code, "unavailable");
  }
});

/** The responses of a gateway without a store. */
async function refusalsWithoutStore(): Promise<Response[]> {
  await using cleanup = new Cleanup();
  const lonely = await startReplica(await startTestNats(cleanup), cleanup);
  return await Promise.all([
    lonely.call("/v1/chat/completions", { body: { messages: say("x") } }),
    lonely.call("/v1/chat/completions", { body: { messages: say("x"), stream: true } }),
    lonely.call("/api/messages", { body: { text: "x" } }),
  ]);
}
