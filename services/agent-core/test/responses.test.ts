// Models with OpenAI's Responses API: against a mock of OpenAI, and against a server that is strict about what comes back.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { LLMock } from "@copilotkit/aimock";
import {
  callItem,
  messageItem,
  reasoningItem,
  startResponsesServer,
  type ResponsesItem,
  type ResponsesServer,
} from "@parley/testing";
import { createResponses } from "../src/model/responses/responses.ts";
import { ResponseBuilder } from "../src/model/responses/reply.ts";
import { ModelError, type ModelDelta, type ModelProvider, type ModelRequest } from "../src/model/provider.ts";

type Messages = ModelRequest["messages"];
const user = (text: string): Messages[number] => ({ role: "user", parts: [{ type: "text", text }] });
const result = (id: string, content: string): Messages[number] => ({
  role: "user",
  parts: [{ type: "tool_result", id, name: "read", content, isError: false }],
});
const tools: ModelRequest["tools"] = [
  { name: "read", description: "Reads a file.", inputSchema: { properties: { path: { type: "string" } } } },
];
const requestOf = (...messages: Messages): ModelRequest => ({
  system: "be kind",
  tools,
  messages,
  maxOutputTokens: 1_000,
  effort: "high",
});

async function ask(provider: ModelProvider, request: ModelRequest) {
  const deltas: ModelDelta[] = [];
  const on = { delta: (delta: ModelDelta) => void deltas.push(delta), alive: () => undefined };
  const reply = await provider.stream(request, on, new AbortController().signal);
  const textOf = (type: ModelDelta["type"]) =>
    deltas.flatMap((each) => (each.type === type ? [each.text] : [])).join("");
  return { reply, textOf };
}

describe("against a mock of OpenAI", () => {
  const mock = new LLMock({ port: 0, chunkSize: 5 });
  before(() => mock.start());
  after(() => mock.stop());
  beforeEach(() => mock.reset());
  const providerOf = () => createResponses({ apiKey: "sk", baseUrl: `${mock.url}/v1`, model: "gpt-5" });

  test("streams text and the summary of its reasoning, with the encrypted item and usage", async () => {
    mock.onMessage("hi", {
      content: "Grüße aus 日本",
      reasoning: "be friendly",
      usage: { input_tokens: 100, output_tokens: 10 },
    });
    const { reply, textOf } = await ask(providerOf(), requestOf(user("hi")));
    assert.equal(mock.getLastRequest()?.path, "/v1/responses");
    const [reasoning, text] = reply.parts;
    assert.deepEqual(text, { type: "text", text: "Grüße aus 日本" });
    assert.ok(reasoning?.type === "reasoning");
    assert.deepEqual([reasoning.text, reasoning.model], ["be friendly", "openai:gpt-5"]);
    assert.match(reasoning.raw ?? "", /"encrypted_content":"\S+"/);
    assert.deepEqual([textOf("text"), textOf("reasoning")], ["Grüße aus 日本", "be friendly"]);
    assert.deepEqual([reply.stopReason, reply.usage?.inputTokens, reply.usage?.outputTokens], ["end_turn", 100, 10]);
  });

  test("reports errors, lost connections and a cut answer like chat completions", async () => {
    const fails = (failure: string) =>
      assert.rejects(ask(providerOf(), requestOf(user("hi"))), (error) => {
        assert.ok(error instanceof ModelError, String(error));
        return error.failure === failure;
      });
    mock.onMessage("hi", { error: { message: "slow down", type: "rate_limit_error" }, status: 429 });
    await fails("rate_limit");
    mock.reset();
    mock.addFixture({ match: {}, response: { content: "a long answer" }, truncateAfterChunks: 4 });
    await fails("connection");
    mock.reset();
    mock.onMessage("hi", { content: "half", finishReason: "length" });
    assert.equal((await ask(providerOf(), requestOf(user("hi")))).reply.rawStopReason, "incomplete");
  });
});

describe("against a strict server", () => {
  let server: ResponsesServer;
  let provider: ModelProvider;
  before(async () => {
    server = await startResponsesServer();
    provider = createResponses({
      baseUrl: server.url,
      model: "gpt-5",
      name: "gpt",
      addressSetting: "llm.gpt.base_url",
    });
  });
  after(() => server.stop());
  const inputs = (index = -1): ResponsesItem[] => server.requests.at(index)?.input ?? [];

  // design: 001.29b
  test("sends reasoning and unknown items back unchanged, in order, before the calls they led to", async () => {
    const thought = reasoningItem("rs_1", "gAAAA-secret", "look first");
    const search: ResponsesItem = { id: "ws_1", type: "web_search_call", status: "completed", action: { query: "q" } };
    server.answer([thought, search, callItem("call_1", "read", { path: "a" })], [messageItem("seen")]);
    const first = await ask(provider, requestOf(user("look")));
    assert.equal(first.reply.stopReason, "tool_use");
    assert.equal(first.textOf("tool_input"), '{"path":"a"}');
    assert.deepEqual(first.reply.usage, {
      inputTokens: 20,
      outputTokens: 30,
      cacheReadTokens: 100,
      cacheWriteTokens: 0,
      reasoningTokens: 20,
    });
    const answer: Messages[number] = { role: "assistant", parts: first.reply.parts };
    const { reply } = await ask(provider, requestOf(user("look"), answer, result("call_1", "inside")));
    assert.deepEqual(reply.parts, [{ type: "text", text: "seen" }]);
    assert.deepEqual(inputs().slice(1), [
      thought,
      search,
      { type: "function_call", call_id: "call_1", name: "read", arguments: '{"path":"a"}' },
      { type: "function_call_output", call_id: "call_1", output: "inside" },
    ]);
    assert.deepEqual(server.refusals, []);
    assert.deepEqual(server.requests.at(-1)?.reasoning, { effort: "high", summary: "auto" });
  });

  test("keeps its reasoning from other models, and drops reasoning that nothing follows", async () => {
    const thought = reasoningItem("rs_2", "gAAAA-other");
    server.answer([thought, messageItem("one")], [messageItem("two")], [messageItem("three")]);
    const { reply } = await ask(provider, requestOf(user("a")));
    const own: Messages[number] = { role: "assistant", parts: reply.parts };
    const other = createResponses({ baseUrl: server.url, model: "gpt-5", name: "other", addressSetting: "x" });
    await ask(other, requestOf(user("a"), own, user("b")));
    assert.ok(inputs().every(({ type }) => type === "message"));
    const alone: Messages[number] = {
      role: "assistant",
      parts: reply.parts.filter(({ type }) => type === "reasoning"),
    };
    await ask(provider, requestOf(user("a"), alone, user("b")));
    assert.deepEqual(
      inputs().map(({ role }) => role),
      ["user", "user"],
    );
  });

  test("answers without its reasoning when the server cannot read it any more", async () => {
    const raw = JSON.stringify(reasoningItem("rs_3", "from another organisation"));
    const old: Messages[number] = {
      role: "assistant",
      parts: [
        { type: "reasoning", text: "", raw, model: "gpt:gpt-5" },
        { type: "text", text: "one" },
      ],
    };
    server.answer([messageItem("two")]);
    const { reply } = await ask(provider, requestOf(user("a"), old, user("b")));
    assert.deepEqual(reply.parts, [{ type: "text", text: "two" }]);
    assert.match(server.refusals.at(-1) ?? "", /could not be verified/);
  });

  test("stops sending fields that a model without reasoning refuses", async () => {
    const plain = createResponses({ baseUrl: server.url, model: "gpt-4o", addressSetting: "x" });
    server.answer(
      { refusal: "Encrypted content is not supported with this model." },
      { refusal: "Unsupported parameter: 'reasoning.summary' is not supported with the 'gpt-4o' model." },
      { refusal: "Unsupported parameter: 'reasoning.effort' is not supported with this model." },
      [messageItem("plain")],
      [messageItem("again")],
    );
    await ask(plain, requestOf(user("hi")));
    await ask(plain, requestOf(user("hi")));
    const { include, reasoning } = server.requests.at(-1) ?? {};
    assert.deepEqual([include, reasoning], [undefined, undefined]);
  });
});

describe("replies", () => {
  const replyTo = (...events: object[]) => {
    const builder = new ResponseBuilder({ model: "m", origin: "o:m", takenIds: ["call_1"], newId: () => "new" });
    for (const event of events) builder.add({ name: "", data: JSON.stringify(event) });
    return builder.reply();
  };
  const done = (item: ResponsesItem, index = 0) => ({ type: "response.output_item.done", output_index: index, item });
  const ended = (status: string, reason?: string) => ({
    type: `response.${status}`,
    response: { status, incomplete_details: reason === undefined ? null : { reason } },
  });

  test("drop a call that was cut off and report the reason", () => {
    const cut = { ...callItem("call_9", "read", {}), status: "incomplete", arguments: '{"pa' };
    const reply = replyTo(done(messageItem("first")), done(cut, 1), ended("incomplete", "max_output_tokens"));
    assert.deepEqual(reply.parts, [{ type: "text", text: "first" }]);
    assert.equal(reply.stopReason, "max_tokens");
    assert.equal(replyTo(ended("incomplete", "content_filter")).stopReason, "refusal");
  });

  test("give a call whose id is taken a new one", () => {
    const reply = replyTo(done(callItem("call_1", "read", {})), ended("completed"));
    assert.deepEqual(reply.parts, [{ type: "tool_call", id: "new", name: "read", input: "{}" }]);
    assert.equal(reply.stopReason, "tool_use");
  });

  test("are read from servers that send the whole response at once", () => {
    const output = [reasoningItem("rs", "x", "hm"), messageItem("all"), callItem("call_2", "read", { path: "b" })];
    const reply = replyTo({ object: "response", status: "completed", model: "served", output });
    assert.deepEqual(
      reply.parts.map(({ type }) => type),
      ["reasoning", "text", "tool_call"],
    );
    assert.equal(reply.model, "served");
  });

  test("fail with the error that the response contains", () => {
    const fails = (error: object, failure: string) =>
      assert.throws(
        () => replyTo({ type: "response.failed", response: { status: "failed", error } }),
        (thrown) => thrown instanceof ModelError && thrown.failure === failure,
      );
    fails({ code: "rate_limit_exceeded", message: "slow down" }, "rate_limit");
    fails({ code: "server_error", message: "oops" }, "server");
    fails({ code: "context_length_exceeded", message: "too long" }, "context_overflow");
  });
});
