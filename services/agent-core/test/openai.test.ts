import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, describe, test } from "node:test";
import { LLMock } from "@copilotkit/aimock";
import { readBaseConfig } from "@parley/chassis";
import { noUsage, type Part, type ToolCall } from "@parley/contracts";
import { readConfig } from "../src/config.ts";
import { callModel } from "../src/model/call.ts";
import { createOpenAi } from "../src/model/openai/openai.ts";
import { ModelError, type ModelDelta, type ModelProvider, type ModelRequest } from "../src/model/provider.ts";

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
const never = new AbortController().signal;

/** Makes one call and returns its deltas and the number of alive signals, too. */
async function ask(provider: ModelProvider, request = requestOf(user("hi")), signal = never) {
  const deltas: ModelDelta[] = [];
  let alive = 0;
  const on = { delta: (delta: ModelDelta) => void deltas.push(delta), alive: () => void (alive += 1) };
  const reply = await provider.stream(request, on, signal);
  return { reply, deltas, alive };
}

const failing =
  (failure: string, message = /./) =>
  (error: unknown) => {
    assert.ok(error instanceof ModelError, String(error));
    assert.equal(error.failure, failure);
    assert.match(error.message, message);
    return true;
  };
const calls = (parts: readonly Part[]): ToolCall[] =>
  parts.flatMap((part) => (part.type === "tool_call" ? [part] : []));

describe("against a mock of OpenAI", () => {
  const mock = new LLMock({ port: 0, chunkSize: 5 });
  let provider: ModelProvider;
  before(async () => {
    await mock.start();
    provider = createOpenAi({ apiKey: "sk-test", baseUrl: `${mock.url}/v1`, model: "gpt-test" });
  });
  after(() => mock.stop());
  beforeEach(() => mock.reset());

  // design: 001.29, 002.10
  test("streams text with its usage and sends the key", async () => {
    const usage = { prompt_tokens: 100, completion_tokens: 10 };
    mock.onMessage("hi", { content: "Grüße aus 日本 🎌", reasoning: "be friendly", usage });
    const { reply, deltas, alive } = await ask(provider);
    assert.deepEqual(reply.parts, [
      { type: "reasoning", text: "be friendly" },
      { type: "text", text: "Grüße aus 日本 🎌" },
    ]);
    assert.equal(reply.stopReason, "end_turn");
    assert.equal(reply.usage?.inputTokens, 100);
    assert.equal(reply.usage?.outputTokens, 10);
    const texts = deltas.flatMap((delta) => (delta.type === "text" ? [delta.text] : []));
    assert.ok(texts.length > 1 && alive > 0);
    assert.equal(texts.join(""), "Grüße aus 日本 🎌");
    assert.equal(mock.getLastRequest()?.path, "/v1/chat/completions");
  });

  // design: 001.41, 002.10
  test("returns parallel calls with arguments and sends one message per result", async () => {
    const toolCalls = [
      { id: "call_a", name: "read", arguments: '{"path":"a.txt"}' },
      { id: "call_b", name: "ls", arguments: "{}" },
    ];
    mock.addFixture({ match: { userMessage: "look", hasToolResult: false }, response: { toolCalls } });
    mock.addFixture({ match: { userMessage: "look", hasToolResult: true }, response: { content: "seen" } });
    const { reply } = await ask(provider, requestOf(user("look")));
    assert.equal(reply.stopReason, "tool_use");
    assert.deepEqual(
      calls(reply.parts),
      toolCalls.map((call) => ({ type: "tool_call", id: call.id, name: call.name, input: call.arguments })),
    );
    const results: Part[] = calls(reply.parts).map((call) => ({
      type: "tool_result",
      id: call.id,
      name: call.name,
      content: `of ${call.name}`,
      isError: false,
    }));
    const next = requestOf(user("look"), { role: "assistant", parts: reply.parts }, { role: "user", parts: results });
    assert.deepEqual((await ask(provider, next)).reply.parts, [{ type: "text", text: "seen" }]);
    const body = mock.getLastRequest()?.body;
    assert.ok(Array.isArray(body?.messages));
    assert.deepEqual(
      body.messages.map((message: { role: string; tool_call_id?: string }) => message.tool_call_id ?? message.role),
      ["system", "user", "assistant", "call_a", "call_b"],
    );
  });

  test("reports 429 and 500 as retryable with the requested delay", async () => {
    mock.onMessage("hi", { error: { message: "slow down", type: "rate_limit_error" }, status: 429, retryAfter: 7 });
    await assert.rejects(ask(provider), (error) => {
      assert.ok(failing("rate_limit", /slow down/)(error) && error instanceof ModelError);
      return error.retryable && error.retryAfterMs === 7_000;
    });
    mock.reset();
    mock.onMessage("hi", { error: { message: "oops", type: "server_error" }, status: 500 });
    await assert.rejects(ask(provider), failing("server", /oops/));
  });

  // design: 002.10b, 002.27
  test("retries after an error and a stream that was cut off until there is an answer", async () => {
    mock.addFixture({
      match: { userMessage: "hi", sequenceIndex: 0 },
      response: { error: { message: "oops" }, status: 500 },
    });
    mock.addFixture({
      match: { userMessage: "hi", sequenceIndex: 1 },
      response: { content: "a long answer that is cut" },
      truncateAfterChunks: 3,
    });
    mock.onMessage("hi", { content: "here" });
    const times = { tries: 8, baseMs: 1, capMs: 60_000, firstByteMs: 10_000, idleMs: 10_000 };
    const reasons: string[] = [];
    const observer = { delta: () => undefined, retry: (retry: { reason: string }) => void reasons.push(retry.reason) };
    const reply = await callModel(provider, requestOf(user("hi")), times, observer, never);
    assert.deepEqual(reply.parts, [{ type: "text", text: "here" }]);
    assert.equal(reasons.length, 2);
    assert.match(reasons[0] ?? "", /^server: /);
    assert.match(reasons[1] ?? "", /^connection: /);
  });

  test("reports a stream that was cut off as a lost connection, not a short answer", async () => {
    mock.addFixture({ match: {}, response: { content: "a long answer" }, truncateAfterChunks: 2 });
    await assert.rejects(ask(provider), failing("connection"));
  });
});

/** A server whose answers each test defines. */
class Scripted {
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  readonly #answers: ((response: ServerResponse) => void)[] = [];
  readonly bodies: Record<string, unknown>[] = [];
  readonly authorizations: (string | undefined)[] = [];
  readonly ports = new Set<number | undefined>();

  async start(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  next(...answers: ((response: ServerResponse) => void)[]): void {
    this.#answers.splice(0, Number.POSITIVE_INFINITY, ...answers);
    this.bodies.length = 0;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const part of request.setEncoding("utf8")) body += String(part);
    this.bodies.push(body === "" ? {} : (JSON.parse(body) as Record<string, unknown>));
    this.authorizations.push(request.headers.authorization);
    this.ports.add(request.socket.remotePort);
    this.#answers.shift()?.(response);
  }
}

const sse = (...chunks: (string | object)[]) =>
  chunks.map((chunk) => `data: ${typeof chunk === "string" ? chunk : JSON.stringify(chunk)}\n\n`).join("");
const piece = (delta: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason }],
});
const streaming = (body: string) => (response: ServerResponse) => {
  response.writeHead(200, { "content-type": "text/event-stream" }).end(body);
};
const json = (status: number, body: unknown) => (response: ServerResponse) => {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
};
const answered = streaming(sse(piece({ content: "so" }), piece({}, "stop"), "[DONE]"));

describe("self-hosted servers", () => {
  const server = new Scripted();
  let baseUrl = "";
  let provider: ModelProvider;
  before(async () => {
    baseUrl = await server.start();
  });
  after(() => server.stop());
  beforeEach(() => {
    provider = createOpenAi({ baseUrl, model: "llama" });
  });

  test("separates Ollama's parallel calls with index 0 and the reason 'stop'", async () => {
    const call = (id: string, path: string) => ({
      tool_calls: [{ id, index: 0, type: "function", function: { name: "read", arguments: `{"path":"${path}"}` } }],
    });
    server.next(
      streaming(
        sse(
          piece({ role: "assistant", content: "", reasoning: "two files" }),
          piece(call("call_1", "a")),
          piece(call("call_2", "b")),
          piece({ content: "" }, "stop"),
          { choices: [], usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 } },
          "[DONE]",
        ),
      ),
    );
    const { reply } = await ask(provider);
    assert.equal(reply.stopReason, "tool_use");
    assert.deepEqual(
      calls(reply.parts).map((each) => [each.id, each.input]),
      [
        ["call_1", '{"path":"a"}'],
        ["call_2", '{"path":"b"}'],
      ],
    );
    assert.deepEqual(reply.usage, { ...noUsage, inputTokens: 5, outputTokens: 2 });
  });

  test("gives calls without ids unique ids, also across replies", async () => {
    const bare = { index: 0, function: { name: "now", arguments: {} } };
    const twice = streaming(sse(piece({ tool_calls: [bare] }), piece({ tool_calls: [bare] }), piece({}, "stop")));
    server.next(twice, twice);
    const ids = [await ask(provider), await ask(provider)].flatMap(({ reply }) =>
      calls(reply.parts).map(({ id }) => id),
    );
    assert.equal(ids.length, 4);
    assert.equal(new Set(ids).size, 4);
    for (const id of ids) assert.match(id, /^call_[0-9a-f]{32}$/);
  });

  // design: 000.33
  test("sends no authorization without a key and reports missing usage as unknown", async () => {
    server.next(answered);
    const { reply } = await ask(provider);
    assert.equal(reply.usage, null);
    assert.equal(reply.model, "llama");
    assert.equal(server.authorizations.at(-1), undefined);
  });

  test("signals alive for every chunk, including comments", async () => {
    const sent = Promise.withResolvers<ServerResponse>();
    server.next((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).write(": loading\n\n");
      sent.resolve(response);
    });
    let alive = 0;
    const reply = provider.stream(
      requestOf(user("hi")),
      {
        delta: () => undefined,
        alive: () => {
          alive += 1;
          if (alive === 1) void sent.promise.then((response) => response.end(sse(piece({ content: "so" }, "stop"))));
        },
      },
      never,
    );
    assert.equal(textOfFirst((await reply).parts), "so");
    assert.ok(alive >= 2);
  });

  test("reports a lost connection when a stream ends without a reason and [DONE]", async () => {
    const half = sse(piece({ content: "half an ans" }));
    server.next(
      streaming(half),
      streaming(`${half}data: {"choices":[{"del`),
      (response) => {
        response.writeHead(200, { "content-type": "text/event-stream" }).write(half, () => response.destroy());
      },
      streaming(""),
    );
    for (let tries = 0; tries < 4; tries++) await assert.rejects(ask(provider), failing("connection"));
  });

  test("accepts [DONE] alone, a reason alone, and a lost connection after the reason", async () => {
    const said = sse(piece({ content: "so" }, "stop"));
    server.next(streaming(sse(piece({ content: "so" }), "[DONE]")), streaming(said), (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).write(said, () => response.destroy());
    });
    for (let tries = 0; tries < 3; tries++) assert.equal(textOfFirst((await ask(provider)).reply.parts), "so");
  });

  test("returns the answer when it is complete although the server keeps the connection open", async () => {
    server.next((response) => {
      response
        .writeHead(200, { "content-type": "text/event-stream" })
        .write(sse(piece({ content: "so" }, "stop"), "[DONE]"));
    });
    assert.equal(textOfFirst((await ask(provider)).reply.parts), "so");
  });

  test("reuses the connection of a completed answer", async () => {
    const fresh = new Scripted();
    const asked = createOpenAi({ baseUrl: await fresh.start(), model: "m" });
    // The body ends later than the answer.
    const late = (response: ServerResponse) => {
      response
        .writeHead(200, { "content-type": "text/event-stream" })
        .write(sse(piece({ content: "so" }, "stop"), "[DONE]"));
      setImmediate(() => setImmediate(() => response.end()));
    };
    fresh.next(...Array.from({ length: 10 }, () => late));
    for (let call = 0; call < 10; call++) await ask(asked);
    fresh.stop();
    // A call that starts before the previous body has ended needs another connection.
    assert.ok(fresh.ports.size < 10, `${fresh.ports.size} connections`);
  });

  test("reports an error in the middle of the stream", async () => {
    server.next(
      streaming(sse(piece({ content: "so" }), { error: { message: "out of memory", code: 500 } })),
      streaming(`${sse(piece({}))}event: error\ndata: {"error":{"message":"The model has crashed"}}\n\n`),
      streaming(sse({ error: { message: "request (9 tokens) exceeds the available context size (8 tokens)" } })),
    );
    await assert.rejects(ask(provider), failing("server", /out of memory/));
    await assert.rejects(ask(provider), failing("server", /crashed/));
    await assert.rejects(ask(provider), failing("context_overflow"));
  });

  // design: 001.29, 004.16c
  test("reads a whole answer, and an error with a success status, when a stream was requested", async () => {
    server.next(
      json(200, { choices: [{ message: { role: "assistant", content: "so" }, finish_reason: "stop" }] }),
      json(200, { error: "Unexpected endpoint or method. (POST /chat/completions)" }),
    );
    assert.equal(textOfFirst((await ask(provider)).reply.parts), "so");
    await assert.rejects(ask(provider), failing("invalid", /Unexpected endpoint/));
  });

  test("rejects a web page without a retry", async () => {
    server.next((response) => response.writeHead(200, { "content-type": "text/html" }).end("<html></html>"));
    await assert.rejects(ask(provider), failing("invalid", /OPENAI_BASE_URL/));
  });

  test("reports an unreachable server as a lost connection with the reason", async () => {
    const gone = new Scripted();
    const url = await gone.start();
    gone.stop();
    await assert.rejects(ask(createOpenAi({ baseUrl: url, model: "m" })), failing("connection", /ECONNREFUSED/));
  });

  test("rejects with the signal's reason, before and during the answer", async () => {
    for (const begin of ["", sse(piece({ content: "so" }))]) {
      const stop = new AbortController();
      const reason = new Error("stopped");
      server.next((response) => {
        if (begin === "") stop.abort(reason);
        else response.writeHead(200, { "content-type": "text/event-stream" }).write(begin);
      });
      const on = { delta: () => stop.abort(reason), alive: () => undefined };
      await assert.rejects(provider.stream(requestOf(user("hi")), on, stop.signal), (error) => error === reason);
    }
  });

  test("corrects a limit within the call and remembers one that applies to the model", async () => {
    const refusal = (message: string) => json(400, { error: { message, type: "invalid_request_error" } });
    server.next(
      refusal(
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      ),
      refusal("max_tokens is too large: 16384. This model supports at most 4096 completion tokens"),
      answered,
      refusal(
        "This model's maximum context length is 8192 tokens. However, you requested 10192 tokens (6096 in the messages, 4096 in the completion).",
      ),
      answered,
      answered,
    );
    for (let call = 0; call < 3; call++) await ask(provider);
    assert.deepEqual(
      server.bodies.map(({ max_tokens, max_completion_tokens }) => max_tokens ?? [max_completion_tokens]),
      [16_384, [16_384], [4_096], [4_096], [2_096], [4_096]],
    );
  });

  test("does not retry a rejection that is not about limits", async () => {
    server.next(json(400, { error: { message: "llama does not support tools" } }), answered);
    await assert.rejects(ask(provider), failing("invalid", /does not support tools/));
    assert.equal(server.bodies.length, 1);
  });

  test("learns permanently that a server has no streaming, no images and no effort", async () => {
    const whole = json(200, { choices: [{ message: { content: "so" }, finish_reason: "stop" }] });
    server.next(
      json(500, { error: { message: "image input is not supported - hint: you may need to provide the mmproj" } }),
      json(400, { error: { message: "Unknown parameter: 'reasoning_effort'." } }),
      json(400, { error: { message: "streaming is not supported with tools" } }),
      whole,
      whole,
    );
    const image: Part = { type: "binary", mediaType: "image/png", data: "iVBO" };
    const request = { ...requestOf({ role: "user", parts: [image] }), effort: "high" as const };
    for (let call = 0; call < 2; call++) assert.equal(textOfFirst((await ask(provider, request)).reply.parts), "so");
    assert.deepEqual(
      server.bodies.map((body) => [
        JSON.stringify(body).includes("image_url"),
        "reasoning_effort" in body,
        body["stream"],
      ]),
      [
        [true, true, true],
        [false, true, true],
        [false, false, true],
        [false, false, false],
        [false, false, false],
      ],
    );
  });

  test("still sends images after the refusal of one when the server has accepted another before", async () => {
    const showing = (data: string) =>
      requestOf({ role: "user", parts: [{ type: "binary", mediaType: "image/png", data }] });
    // The text alone does not tell whether one image is refused, or all of them.
    const refusal = "this image cannot be processed";
    server.next(answered, json(400, { error: { message: refusal } }), answered);
    await ask(provider, showing("iVBO"));
    await assert.rejects(ask(provider, showing("AAAA")), failing("invalid", /cannot be processed/));
    await ask(provider, showing("iVBO"));
    assert.equal(server.bodies.length, 3);
    for (const body of server.bodies) assert.ok(JSON.stringify(body).includes("image_url"));
  });

  test("names the variable of the key in an error", async () => {
    server.next(json(401, { error: { message: "no" } }));
    await assert.rejects(ask(provider), (error) => {
      return failing("auth")(error) && error instanceof ModelError && error.keyVariable === "OPENAI_API_KEY";
    });
  });

  test("reports problems of key, address or model in advance, until the first answer", async () => {
    const noteAfter = async (answer: (response: ServerResponse) => void, apiKey?: string) => {
      const asked = createOpenAi({ baseUrl, model: "llama", apiKey });
      server.next(answer, answered);
      await asked.prepare();
      const note = asked.note();
      await ask(asked);
      assert.equal(asked.note(), null);
      return note;
    };
    assert.match((await noteAfter(json(401, {}), "sk-wrong")) ?? "", /rejected OPENAI_API_KEY/);
    assert.match((await noteAfter(json(401, {}))) ?? "", /requires a key/);
    assert.match((await noteAfter(json(404, {}))) ?? "", /\/v1/);
    assert.match((await noteAfter(json(200, { data: [{ id: "qwen" }] }))) ?? "", /does not list llama; it lists qwen/);
    assert.equal(await noteAfter(json(200, { data: [{ id: "llama:latest" }] })), null);
    assert.equal(await noteAfter(json(200, { data: [] })), null);
    assert.equal(await noteAfter(streaming("not JSON")), null);
  });
});

function textOfFirst(parts: readonly Part[]): string | undefined {
  return parts[0]?.type === "text" ? parts[0].text : undefined;
}

describe("the configured model", () => {
  const configure = (env: Record<string, string>, models: object = {}) => {
    const base = readBaseConfig({}, "agent-core");
    return readConfig(env, { ...base, settings: { ...base.settings, models: { ...base.settings.models, ...models } } });
  };
  const choose = (env: Record<string, string>) => configure(env).model;

  test("follows the prefix: openai with a key, an address, or both", () => {
    const openai = configure({ PARLEY_MODEL: "openai:gpt-x", OPENAI_API_KEY: "sk-openai" });
    assert.equal(openai.model, "openai:gpt-x");
    assert.deepEqual(openai.access, {
      anthropic: null,
      openai: { apiKey: "sk-openai", baseUrl: "https://api.openai.com/v1" },
      named: new Map(),
    });
    const own = configure({ PARLEY_MODEL: "openai:llama3:8b", OPENAI_BASE_URL: "http://127.0.0.1:11434/v1" });
    assert.equal(own.model, "openai:llama3:8b");
    assert.deepEqual(own.access.openai, { apiKey: undefined, baseUrl: "http://127.0.0.1:11434/v1" });
  });

  test("is Claude with the prefix anthropic or none, in any environment", () => {
    const env = { ANTHROPIC_API_KEY: "sk-ant", OPENAI_API_KEY: "sk-openai" };
    assert.equal(choose({ ...env, PARLEY_MODEL: "anthropic:claude-x" }), "anthropic:claude-x");
    assert.equal(choose({ ...env, PARLEY_MODEL: "claude-x" }), "anthropic:claude-x");
    assert.match(choose(env), /^anthropic:claude-/);
    assert.equal(choose({ OPENAI_API_KEY: "sk-openai" }), "rehearsal");
    assert.equal(choose({ ...env, PARLEY_MODEL: "rehearsal" }), "rehearsal");
  });

  test("is rejected with instructions when something is missing", () => {
    const refuses = (env: Record<string, string>, message: RegExp) =>
      assert.throws(() => choose(env), { name: "ConfigError", message });
    refuses({ PARLEY_MODEL: "openai:gpt-x", ANTHROPIC_API_KEY: "sk-ant" }, /Set OPENAI_API_KEY .* OPENAI_BASE_URL/);
    refuses(
      { PARLEY_MODEL: "openai:", OPENAI_API_KEY: "sk-openai" },
      /"openai:" is not a model name; .*openai:<model>/,
    );
    refuses({ PARLEY_MODEL: "anthropic:claude-x", OPENAI_API_KEY: "sk-openai" }, /requires ANTHROPIC_API_KEY/);
    refuses({ OPENAI_BASE_URL: "localhost:11434/v1" }, /OPENAI_BASE_URL: .*http:\/\//);
    refuses({ OPENAI_BASE_URL: "http://me:secret@host/v1" }, /OPENAI_BASE_URL: must not contain/);
  });

  test("has only accessible fallbacks, which is checked at the start", () => {
    const fallback = { fallback: ["openai:gpt-x"] };
    assert.throws(() => configure({ ANTHROPIC_API_KEY: "sk-ant" }, fallback), {
      name: "ConfigError",
      message: /models\.fallback: openai:gpt-x .*OPENAI_API_KEY/,
    });
    assert.equal(configure({}, fallback).model, "rehearsal");
    const both = { ANTHROPIC_API_KEY: "sk-ant", OPENAI_API_KEY: "sk-openai" };
    assert.match(configure(both, fallback).model, /^anthropic:/);
  });

  test("keeps every key out of the log", () => {
    const secrets = (env: Record<string, string>) => configure(env).secrets.values;
    assert.deepEqual(secrets({ ANTHROPIC_API_KEY: "sk-ant", OPENAI_API_KEY: "sk-openai" }), ["sk-ant", "sk-openai"]);
    assert.deepEqual(secrets({ PARLEY_MODEL: "openai:m", OPENAI_BASE_URL: "http://h/v1" }), []);
  });
});
