import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, describe, test } from "node:test";
import type { Part } from "@parley/contracts";
import { startScriptedModel, startStrictEndpoint, type ScriptedModel, type StrictEndpoint } from "@parley/testing";
import { createAnthropic, type AnthropicOptions } from "../src/model/anthropic/anthropic.ts";
import { callModel } from "../src/model/call.ts";
import { ModelError, type ModelFailure, type ModelProvider, type ModelRequest } from "../src/model/provider.ts";

const never = new AbortController().signal;
const deaf = { delta: () => undefined, alive: () => undefined };
const user = (said: string): ModelRequest["messages"][number] => ({
  role: "user",
  parts: [{ type: "text", text: said }],
});
const requestOf = (...messages: ModelRequest["messages"]): ModelRequest => ({
  system: "be kind",
  tools: [],
  messages,
  maxOutputTokens: 16_384,
});
const hello = requestOf(user("hello"));
const claude = (baseUrl: string, own: Partial<AnthropicOptions> = {}): ModelProvider =>
  createAnthropic({ apiKey: "sk-ant-x", model: "claude-x", baseUrl, thinking: "adaptive", display: "updates", ...own });

describe("Claude at a mock endpoint that rejects what the real one rejects", () => {
  let scripted: ScriptedModel;
  let strict: StrictEndpoint;
  before(async () => {
    scripted = await startScriptedModel();
    strict = await startStrictEndpoint(scripted.url);
  });
  after(async () => {
    assert.deepEqual(strict.refusals, []);
    await strict.stop();
    await scripted.stop();
  });

  // design: 000.32
  test("requests progress updates and the configured effort and returns the usage", async () => {
    const reply = await claude(strict.url).stream(
      { ...hello, effort: "high", stopSequences: ["END"], cacheTtl: "1h" },
      deaf,
      never,
    );
    assert.deepEqual(reply.parts, [{ type: "text", text: "answer to: hello" }]);
    assert.deepEqual([reply.usage?.inputTokens, reply.usage?.outputTokens], [100, 10]);
    const sent = strict.requests.at(-1);
    assert.deepEqual(sent?.thinking, { type: "adaptive", display: "updates" });
    assert.deepEqual(sent?.output_config, { effort: "high" });
    assert.deepEqual(sent?.stop_sequences, ["END"]);
    assert.deepEqual(sent?.system[0]?.cache_control, { type: "ephemeral", ttl: "1h" });
  });

  test("sends the configured thinking display, or disables thinking", async () => {
    const sentBy = async (own: Partial<AnthropicOptions>, request = hello) => {
      await claude(strict.url, own).stream(request, deaf, never);
      return strict.requests.at(-1)?.thinking;
    };
    assert.deepEqual(await sentBy({ display: "omitted" }), { type: "adaptive", display: "omitted" });
    assert.deepEqual(await sentBy({ thinking: "off" }), { type: "disabled" });
    assert.deepEqual(await sentBy({}, { ...hello, thinking: "off" }), { type: "disabled" });
    assert.deepEqual(await sentBy({ thinking: "off" }, { ...hello, thinking: "adaptive" }), {
      type: "adaptive",
      display: "updates",
    });
  });

  // design: 001.29b
  test("returns a model's own thinking byte for byte and drops another model's", async () => {
    const thinking = await claude(strict.url).stream(requestOf(user("think: hm\nsay: so")), deaf, never);
    assert.deepEqual(
      thinking.parts.map((part) => [part.type, part.type === "reasoning" ? part.model : undefined]),
      [
        ["reasoning", "anthropic:claude-x"],
        ["text", undefined],
      ],
    );
    const next = requestOf(user("think: hm\nsay: so"), { role: "assistant", parts: thinking.parts }, user("hello"));
    const kinds = async (model: string) => {
      await claude(strict.url, { model }).stream(next, deaf, never);
      const said = strict.requests.at(-1)?.messages[1]?.content;
      return said?.map((block) => block.type);
    };
    assert.deepEqual(await kinds("claude-x"), ["thinking", "text"]);
    assert.deepEqual(await kinds("claude-y"), ["text"]);
  });

  test("sends calls of other models under ids that the API accepts", async () => {
    const [first, second] = ["functions.now:0", "functions.now/0"];
    const calls = [first, second].map((id): Part => ({ type: "tool_call", id, name: "now", input: "{}" }));
    const results = [first, second].map((id): Part => ({
      type: "tool_result",
      id,
      name: "now",
      content: "noon",
      isError: false,
    }));
    const messages = [
      user("look"),
      { role: "assistant" as const, parts: calls },
      { role: "user" as const, parts: results },
    ];
    await claude(strict.url).stream({ ...requestOf(...messages), tools: [now] }, deaf, never);
    const [, called, answered] = strict.requests.at(-1)?.messages ?? [];
    const ids = called?.content.map((block) => (block.type === "tool_use" ? block.id : ""));
    const answeredIds = answered?.content.map((block) => (block.type === "tool_result" ? block.tool_use_id : ""));
    assert.equal(new Set(ids).size, 2);
    assert.deepEqual(answeredIds, ids);
  });

  // design: 002.29
  test("starts with the same bytes after appending and finds its cache after eleven parallel calls", async () => {
    const provider = claude(strict.url);
    const first = { ...requestOf(user("look")), tools: [now] };
    await provider.stream(first, deaf, never);
    const calls: Part[] = Array.from({ length: 11 }, (_, id) => ({
      type: "tool_call",
      id: `c${id}`,
      name: "now",
      input: '{"b":1,"a":[2.50]}',
    }));
    const results: Part[] = calls.map((_, id) => ({
      type: "tool_result",
      id: `c${id}`,
      name: "now",
      content: "noon",
      isError: false,
    }));
    const second = {
      ...first,
      messages: [
        ...first.messages,
        { role: "assistant" as const, parts: calls },
        { role: "user" as const, parts: results },
      ],
    };
    await provider.stream(second, deaf, never);
    const [before, after] = strict.requests.slice(-2);
    const marks = (blocks: readonly object[] | undefined) => blocks?.map((block) => "cache_control" in block);
    assert.deepEqual(marks(before?.messages[0]?.content), [true]);
    assert.deepEqual(marks(after?.messages[0]?.content), [true], "at the breakpoint of the previous call");
    assert.equal(marks(after?.messages[2]?.content)?.at(-1), true);
    assert.deepEqual(marks(after?.tools), [true]);
    const bare = (value: unknown) =>
      JSON.stringify(value, (key, each: unknown) => (key === "cache_control" ? undefined : each));
    assert.ok(bare(after?.messages).startsWith(bare(before?.messages).slice(0, -1)));
    assert.equal(bare([after?.system, after?.tools]), bare([before?.system, before?.tools]));
  });

  test("answers in text when requested, with its tools still in the request", async () => {
    const request = { ...requestOf(user("tool: now {}")), tools: [now], toolChoice: "none" as const };
    const times = { tries: 1, baseMs: 1, capMs: 1, firstByteMs: 10_000, idleMs: 10_000 };
    const reply = await callModel(
      claude(strict.url),
      request,
      times,
      { delta: () => undefined, retry: () => undefined },
      never,
    );
    const sent = strict.requests.at(-1);
    assert.deepEqual(
      sent?.tools.map((tool) => tool.name),
      ["now"],
    );
    assert.equal(sent !== undefined && "tool_choice" in sent, false);
    const [asked, wish] = sent?.messages[0]?.content ?? [];
    assert.ok(asked?.type === "text" && asked.text === "tool: now {}");
    assert.ok(wish?.type === "text" && /no tool/.test(wish.text));
    assert.ok(reply.parts.every((part) => part.type !== "tool_call"));
    assert.equal(reply.stopReason, "end_turn");
  });

  test("reports its size and counts the tokens of a prompt", async () => {
    const provider = claude(strict.url);
    assert.deepEqual(await provider.size(never), { contextTokens: 1_000_000, maxOutputTokens: 64_000 });
    assert.ok(((await provider.countTokens?.(hello, never)) ?? 0) > 10);
  });

  test("limits the requested output to what the model supports", async () => {
    await claude(strict.url).stream({ ...hello, maxOutputTokens: 128_000 }, deaf, never);
    assert.equal(strict.requests.at(-1)?.max_tokens, 64_000);
  });
});

const now: ModelRequest["tools"][number] = {
  name: "now",
  description: "The time.",
  inputSchema: { type: "object", properties: {} },
};

type Answer = (response: ServerResponse) => void;
const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Answer =>
  (response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
  };
const refusal = (status: number, type: string, message = "no", details: object = {}, headers = {}): Answer =>
  json(status, { type: "error", error: { type, message, details } }, headers);
const event = (type: string, data: object = {}) => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
const begin = event("message_start", {
  message: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-x-20260101",
    content: [],
    stop_reason: null,
    usage: {
      input_tokens: 5,
      output_tokens: 1,
      cache_creation_input_tokens: 30,
      cache_read_input_tokens: 70,
      cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
    },
  },
});
const saying =
  event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }) +
  event("content_block_delta", { index: 0, delta: { type: "text_delta", text: "so" } });
const ending =
  event("content_block_stop", { index: 0 }) +
  event("message_delta", {
    delta: { stop_reason: "end_turn" },
    usage: { output_tokens: 9, output_tokens_details: { thinking_tokens: 4 } },
  }) +
  event("message_stop");
const streaming =
  (body: string, end: (response: ServerResponse) => void = (response) => response.end()): Answer =>
  (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).write(body, () => end(response));
  };
const answered = streaming(begin + saying + ending);

describe("Claude's failures", () => {
  const queue: Answer[] = [];
  const seen: { body: Record<string, unknown>; beta: string | undefined }[] = [];
  const server = createServer((request, response) => void serve(request, response));
  let baseUrl = "";
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const piece of request.setEncoding("utf8")) body += String(piece);
    if (request.method === "GET") {
      const types = { adaptive: { supported: true } };
      return json(200, { id: "claude-x", capabilities: { thinking: { supported: true, types } } })(response);
    }
    seen.push({ body: JSON.parse(body) as Record<string, unknown>, beta: String(request.headers["anthropic-beta"]) });
    queue.shift()?.(response);
  }
  before(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  beforeEach(() => {
    queue.length = 0;
    seen.length = 0;
  });
  const times = { tries: 8, baseMs: 1, capMs: 60_000, firstByteMs: 10_000, idleMs: 10_000 };
  const call = async (answers: Answer[], own = times) => {
    queue.push(...answers);
    const retries: { delayMs: number; reason: string }[] = [];
    const observer = { delta: () => undefined, retry: (retry: (typeof retries)[number]) => void retries.push(retry) };
    const reply = await callModel(claude(baseUrl), hello, own, observer, never);
    return { reply, retries };
  };
  const failure = async (answer: Answer): Promise<ModelError> => {
    queue.push(answer);
    const error = await claude(baseUrl)
      .stream(hello, deaf, never)
      .then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
    assert.ok(error instanceof ModelError, String(error));
    return error;
  };

  const passing: [string, ModelFailure, Answer][] = [
    ["429", "rate_limit", refusal(429, "rate_limit_error")],
    [
      "429 ramp_limit_exceeded",
      "rate_limit",
      refusal(429, "rate_limit_error", "no", { error_code: "ramp_limit_exceeded" }),
    ],
    ["529", "overloaded", refusal(529, "overloaded_error")],
    ["500", "server", refusal(500, "api_error")],
    ["503", "server", refusal(503, "api_error")],
    ["408", "server", refusal(408, "timeout_error")],
    [
      "an error event in the stream",
      "overloaded",
      streaming(begin + event("error", { error: { type: "overloaded_error", message: "busy" } })),
    ],
    ["a stream that ends early", "connection", streaming(begin + saying)],
    ["a stream that ends inside an event", "connection", streaming(begin + saying.slice(0, -9))],
    ["a connection that breaks", "connection", streaming(begin + saying, (response) => response.destroy())],
    ["a connection that is refused", "connection", (response) => response.destroy()],
  ];
  for (const [name, expected, answer] of passing) {
    // design: 003.39
    test(`${name} is ${expected} and is retried until it passes`, async () => {
      assert.equal((await failure(answer)).failure, expected);
      const { reply, retries } = await call([...Array.from({ length: 7 }, () => answer), answered]);
      assert.deepEqual(reply.parts, [{ type: "text", text: "so" }]);
      assert.equal(retries.length, 7);
      for (const { reason } of retries) assert.ok(reason.startsWith(expected));
    });
  }

  // design: 000.12
  test("stops after eight attempts", async () => {
    await assert.rejects(call(Array.from({ length: 9 }, () => refusal(529, "overloaded_error"))), {
      failure: "overloaded",
    });
    assert.equal(seen.length, 8);
  });

  const final: [string, ModelFailure, Answer][] = [
    [
      "enforced_spend_limit_reached",
      "spend_limit",
      refusal(429, "rate_limit_error", "no", { error_code: "enforced_spend_limit_reached" }),
    ],
    [
      "contract_spend_limit_reached",
      "spend_limit",
      refusal(429, "rate_limit_error", "no", { error_code: "contract_spend_limit_reached" }),
    ],
    ["402", "spend_limit", refusal(402, "billing_error")],
    ["401", "auth", refusal(401, "authentication_error")],
    ["403", "auth", refusal(403, "permission_error")],
    ["400", "invalid", refusal(400, "invalid_request_error")],
    ["404", "invalid", refusal(404, "not_found_error")],
    ["an unknown model", "unknown_model", refusal(404, "not_found_error", "model: claude-9")],
    ["413", "context_overflow", refusal(413, "request_too_large")],
    [
      "a prompt that is too long",
      "context_overflow",
      refusal(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
    ],
    [
      "a prompt that leaves too little room for the answer",
      "context_overflow",
      refusal(
        400,
        "invalid_request_error",
        "input length and `max_tokens` exceed context limit: 7 + 2 > 8, decrease input length or `max_tokens` and try again",
      ),
    ],
  ];
  for (const [name, expected, answer] of final) {
    test(`${name} is ${expected} and is not retried`, async () => {
      await assert.rejects(call([answer, answered]), { failure: expected, keyVariable: "ANTHROPIC_API_KEY" });
      assert.equal(seen.length, 1);
    });
  }

  // design: 000.12c, 000.12e
  test("waits at least as long as requested, and fails when that is more than a minute", async () => {
    const wait = (after: string): Answer => refusal(429, "rate_limit_error", "no", {}, { "retry-after": after });
    const { retries } = await call([wait("0.02"), answered]);
    assert.equal(retries[0]?.delayMs, 20);
    await assert.rejects(call([wait("61"), answered]), { failure: "rate_limit", retryAfterMs: 61_000 });
  });

  test("counts a ping as data when the model thinks without showing it", { timeout: 60_000 }, async () => {
    const begun = Promise.withResolvers<ServerResponse>();
    queue.push(streaming(begin, begun.resolve));
    const steps = [
      (response: ServerResponse) => response.write(event("ping")),
      (response: ServerResponse) => response.end(saying + ending),
    ];
    const alive = () => void begun.promise.then((response) => steps.shift()?.(response));
    const reply = await claude(baseUrl).stream(hello, { delta: () => undefined, alive }, never);
    assert.deepEqual(reply.parts, [{ type: "text", text: "so" }]);
  });

  test("aborts and retries a stream that stalls", async () => {
    const quiet = streaming(begin, () => undefined);
    // On a busy machine an answer may stall as well.
    const answers = Array.from({ length: times.tries - 1 }, () => answered);
    const { reply, retries } = await call([quiet, ...answers], { ...times, idleMs: 30 });
    assert.deepEqual(reply.parts, [{ type: "text", text: "so" }]);
    assert.match(retries[0]?.reason ?? "", /^stalled/);
  });

  // design: 003.6b
  test("reports the stop sequence that was reached", async () => {
    const delta = { stop_reason: "stop_sequence", stop_sequence: "##" };
    const stopped = streaming(begin + saying + event("message_delta", { delta, usage: {} }) + event("message_stop"));
    const { reply } = await call([stopped]);
    assert.deepEqual([reply.stopReason, reply.stopSequence], ["stop_sequence", "##"]);
  });

  test("reports tokens of the one-hour cache and of reasoning", async () => {
    const { reply } = await call([answered]);
    assert.deepEqual(reply.usage, {
      inputTokens: 5,
      outputTokens: 9,
      cacheReadTokens: 70,
      cacheWriteTokens: 30,
      cacheWrite1hTokens: 20,
      reasoningTokens: 4,
    });
    assert.equal(reply.model, "claude-x-20260101");
  });

  test("stops sending the display of thinking when an endpoint does not support it", async () => {
    const provider = claude(baseUrl);
    queue.push(refusal(400, "invalid_request_error", "thinking.display: unknown value 'updates'"), answered, answered);
    await provider.stream(hello, deaf, never);
    await provider.stream(hello, deaf, never);
    assert.deepEqual(
      seen.map(({ body, beta }) => [body["thinking"], beta?.includes("updates")]),
      [
        [{ type: "adaptive", display: "updates" }, true],
        [{ type: "adaptive" }, false],
        [{ type: "adaptive" }, false],
      ],
    );
  });

  test("stops sending examples of arguments when an endpoint does not support them", async () => {
    const provider = claude(baseUrl, { examples: true });
    const tool = { name: "a", description: "A.", inputSchema: { type: "object" }, examples: [{ b: 1 }] };
    queue.push(refusal(400, "invalid_request_error", "tools.0.input_examples: Extra inputs"), answered, answered);
    await provider.stream({ ...hello, tools: [tool] }, deaf, never);
    await provider.stream({ ...hello, tools: [tool] }, deaf, never);
    const sent = seen.map(({ body }) => JSON.stringify(body["tools"]));
    assert.equal(sent.length, 3);
    assert.match(sent[0] ?? "", /"description":"A\."/);
    assert.match(sent[0] ?? "", /"input_examples":\[\{"b":1\}\]/);
    for (const later of sent.slice(1)) {
      assert.match(later, /"description":"A\.\\nExample: \{\\"b\\":1\}"/);
      assert.ok(!later.includes("input_examples"));
    }
  });

  // design: 002.13b
  test("never sends a temperature or other fields that newer models reject", async () => {
    await call([answered]);
    for (const field of ["temperature", "top_p", "top_k", "tool_choice", "betas"]) {
      assert.equal(field in (seen[0]?.body ?? {}), false, field);
    }
  });

  // design: 003.5
  test("reports an unknown stop reason as another one, with the provider's word for it", async () => {
    const { reply } = await call([streaming(begin + saying + ending.replace("end_turn", "out_of_ideas"))]);
    assert.deepEqual([reply.stopReason, reply.rawStopReason], ["other", "out_of_ideas"]);
  });

  // design: 001.29b
  test("returns a block of an unknown type exactly as it was received", async () => {
    const block = { type: "hologram", id: "h1", planes: [{ z: 2.5, a: null }], note: 'a "quoted" line\n' };
    const unknown =
      event("content_block_start", { index: 0, content_block: block }) + event("content_block_stop", { index: 0 });
    const text = saying.replaceAll('"index":0', '"index":1') + ending.replace('"index":0', '"index":1');
    const { reply } = await call([streaming(begin + unknown + text)]);
    assert.deepEqual(
      reply.parts.map(({ type }) => type),
      ["provider", "text"],
    );
    queue.push(answered);
    const next = requestOf(user("hello"), { role: "assistant", parts: reply.parts }, user("go on"));
    await claude(baseUrl).stream(next, deaf, never);
    const [, said] = (seen.at(-1)?.body["messages"] ?? []) as { content: unknown[] }[];
    assert.equal(JSON.stringify(said?.content[0]), JSON.stringify(block));
  });

  test("describes in text what the model cannot be shown", async () => {
    const parts: Part[] = [
      { type: "binary", mediaType: "image/png", data: "iVBO" },
      { type: "binary", mediaType: "application/pdf", name: "a.pdf", data: "JVBE" },
      { type: "binary", mediaType: "audio/ogg", name: "a.ogg", data: "T2dn" },
    ];
    queue.push(answered);
    await claude(baseUrl).stream(requestOf({ role: "user", parts }), deaf, never);
    const sent = JSON.stringify(seen[0]?.body["messages"]);
    assert.match(sent, /"type":"image".*"type":"document".*a\.ogg, audio\/ogg: this type cannot be shown/);
  });
});
