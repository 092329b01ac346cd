import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ToolCall } from "@parley/contracts";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { rejectedRequest } from "../src/model/openai/errors.ts";
import { ReplyBuilder } from "../src/model/openai/reply.ts";
import { SseParser, type SseEvent } from "../src/model/sse.ts";
import { ModelError, type ModelDelta, type ModelFailure, type ModelReply } from "../src/model/provider.ts";

/** Chunks of a stream; a string is sent unchanged. */
type Chunk = string | Record<string, unknown>;

const piece = (delta: Record<string, unknown>, finish_reason: string | null = null) => ({
  object: "chat.completion.chunk",
  model: "served",
  choices: [{ index: 0, delta, finish_reason }],
});
const stop = (reason: string) => piece({}, reason);
const event = (chunk: Chunk): SseEvent => ({
  name: "",
  data: typeof chunk === "string" ? chunk : JSON.stringify(chunk),
});

function builderOf(takenIds: string[] = []): ReplyBuilder {
  let made = 0;
  return new ReplyBuilder({ model: "asked", takenIds, newId: () => `made_${(made += 1)}` });
}

function replyTo(chunks: Chunk[], takenIds: string[] = []): ModelReply {
  const builder = builderOf(takenIds);
  for (const chunk of chunks) builder.add(event(chunk));
  return builder.reply();
}

const calls = (reply: ModelReply): ToolCall[] =>
  reply.parts.flatMap((part) => (part.type === "tool_call" ? [part] : []));
const called = (...deltas: Record<string, unknown>[]) =>
  calls(replyTo([...deltas.map((delta) => piece({ tool_calls: [delta] })), stop("tool_calls")]));
const call = (id: string, name: string, input: string): ToolCall => ({ type: "tool_call", id, name, input });

describe("text and reasoning", () => {
  // design: 003.40
  test("are collected and streamed", () => {
    const builder = builderOf();
    const shown: ModelDelta[] = [
      piece({ role: "assistant", content: "", reasoning_content: "h" }),
      piece({ reasoning_content: "m" }),
      piece({ content: "so" }),
      stop("stop"),
      "[DONE]",
    ].flatMap((chunk) => builder.add(event(chunk)));
    assert.deepEqual(shown, [
      { type: "reasoning", text: "h" },
      { type: "reasoning", text: "m" },
      { type: "text", text: "so" },
    ]);
    assert.deepEqual(builder.reply(), {
      parts: [
        { type: "reasoning", text: "hm" },
        { type: "text", text: "so" },
      ],
      stopReason: "end_turn",
      rawStopReason: "stop",
      usage: null,
      model: "served",
    });
  });

  test("contain reasoning once when a server sends it in both fields", () => {
    const both = replyTo([piece({ reasoning_content: "hm", reasoning: "hm" }), stop("stop")]);
    assert.deepEqual(both.parts, [{ type: "reasoning", text: "hm" }]);
    assert.deepEqual(replyTo([piece({ reasoning: "hm" }), stop("stop")]).parts, both.parts);
  });

  test("are separated when a local model writes its reasoning into the text", () => {
    const builder = builderOf();
    const shown = ["<thi", "nk>\nh", "m</", "think>", "\n\nso"].flatMap((content) =>
      builder.add(event(piece({ content }))),
    );
    assert.deepEqual(shown, [
      { type: "reasoning", text: "h" },
      { type: "reasoning", text: "m" },
      { type: "text", text: "so" },
    ]);
    builder.add(event(stop("stop")));
    assert.deepEqual(builder.reply().parts, [
      { type: "reasoning", text: "hm" },
      { type: "text", text: "so" },
    ]);
  });

  test("are separated when only the end of the reasoning is marked", () => {
    const reply = replyTo([piece({ content: "I should greet.\n</think>\n\nHello" }), stop("stop")]);
    assert.deepEqual(reply.parts, [
      { type: "reasoning", text: "I should greet." },
      { type: "text", text: "Hello" },
    ]);
  });

  test("are read from a list of parts with thinking (Mistral), or null", () => {
    const content = [
      { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
      { type: "text", text: "so" },
    ];
    assert.deepEqual(replyTo([piece({ content: null }), piece({ content }), stop("stop")]).parts, [
      { type: "reasoning", text: "hm" },
      { type: "text", text: "so" },
    ]);
  });

  test("are empty when a server sends empty choices", () => {
    assert.deepEqual(replyTo([{ choices: [] }, { choices: null }, { model: "served" }, "[DONE]"]).parts, []);
  });

  test("are dropped when blank before a call", () => {
    const reply = replyTo([
      piece({ content: "\n\n" }),
      piece({ tool_calls: [{ index: 0, id: "a", function: { name: "now", arguments: "{}" } }] }),
      stop("tool_calls"),
    ]);
    assert.deepEqual(reply.parts, [call("a", "now", "{}")]);
  });

  // design: 001.29
  test("are read whole from a server that does not stream", () => {
    const reply = replyTo([{ choices: [{ message: { role: "assistant", content: "so" }, finish_reason: "stop" }] }]);
    assert.deepEqual(reply.parts, [{ type: "text", text: "so" }]);
    assert.equal(reply.model, "asked");
  });
});

describe("tool calls", () => {
  // design: 003.40
  test("are assembled by their index", () => {
    assert.deepEqual(
      called(
        { index: 0, id: "a", function: { name: "read", arguments: "" } },
        { index: 1, id: "b", function: { name: "ls", arguments: "" } },
        { index: 0, function: { arguments: '{"path":' } },
        { index: 1, function: { arguments: "{}" } },
        { index: 0, function: { arguments: '"x"}' } },
      ),
      [call("a", "read", '{"path":"x"}'), call("b", "ls", "{}")],
    );
  });

  test("are separated when every parallel call has index 0 (Ollama)", () => {
    const input = '{"path":"x"}';
    assert.deepEqual(
      called(
        { index: 0, id: "a", type: "function", function: { name: "read", arguments: input } },
        { index: 0, id: "b", type: "function", function: { name: "read", arguments: input } },
        { index: 0, id: "c", type: "function", function: { name: "ls", arguments: "{}" } },
      ),
      [call("a", "read", input), call("b", "read", input), call("c", "ls", "{}")],
    );
  });

  test("are separated by name when nothing else differs", () => {
    assert.deepEqual(
      called({ index: 0, function: { name: "now" } }, { index: 0, function: { name: "ls" } }).map(({ name }) => name),
      ["now", "ls"],
    );
  });

  test("are not split when every delta repeats the name or has a new id", () => {
    const whole = [call("a", "read", '{"path":"x"}')];
    const pieces = ["", '{"path"', ':"x"}', ""];
    assert.deepEqual(
      called(...pieces.map((part) => ({ index: 0, id: "a", function: { name: "read", arguments: part } }))),
      whole,
    );
    assert.deepEqual(
      called(
        ...pieces.map((part, n) => ({
          index: 0,
          id: ["a", "b", "c", "d"][n],
          function: n === 0 ? { name: "read", arguments: part } : { arguments: part },
        })),
      ),
      whole,
    );
  });

  // design: 003.40
  test("without an index continue the newest call, or the one with their id", () => {
    assert.deepEqual(
      called(
        { id: "a", function: { name: "read", arguments: "{" } },
        { function: { arguments: "}" } },
        { id: "b", function: { name: "read", arguments: "{" } },
        { id: "b", function: { arguments: "}" } },
      ),
      [call("a", "read", "{}"), call("b", "read", "{}")],
    );
  });

  test("get a unique id when theirs is missing, duplicated or from an earlier turn", () => {
    const deltas = ["", "a", "a", "old", undefined].map((id, index) => ({
      index,
      id,
      function: { name: "now", arguments: "{}" },
    }));
    const reply = replyTo([piece({ tool_calls: deltas }), stop("tool_calls")], ["old"]);
    assert.deepEqual(
      calls(reply).map((each) => each.id),
      ["made_1", "a", "made_2", "made_3", "made_4"],
    );
  });

  test("have text arguments when the server sends an object or none", () => {
    const sent = [{ arguments: { path: "x" } }, { arguments: "" }, { arguments: null }, {}];
    assert.deepEqual(
      called(...sent.map((given, index) => ({ index, id: `${index}`, function: { name: "read", ...given } }))).map(
        (each) => each.input,
      ),
      ['{"path":"x"}', "{}", "{}", "{}"],
    );
  });

  test("have names that every provider accepts", () => {
    const names = ["functions.read", "läs file", "*", "", "x".repeat(100)];
    for (const { name } of called(...names.map((each, index) => ({ index, id: "", function: { name: each } }))))
      assert.match(name, /^[A-Za-z0-9_-]{1,64}$/);
  });

  test("keep invalid arguments as written, so that the tool result reports the error", () => {
    assert.equal(called({ index: 0, id: "a", function: { name: "read", arguments: '{"a' } })[0]?.input, '{"a');
  });
});

describe("stop reasons", () => {
  const reasonFor = (raw: string, ...deltas: Record<string, unknown>[]) =>
    replyTo([...deltas.map((delta) => piece(delta)), stop(raw)]).stopReason;
  const toolCall = { tool_calls: [{ index: 0, id: "a", function: { name: "now", arguments: "{}" } }] };

  test("are mapped, and an unknown one is the end", () => {
    assert.equal(reasonFor("stop", { content: "so" }), "end_turn");
    assert.equal(reasonFor("length", { content: "so" }), "max_tokens");
    assert.equal(reasonFor("content_filter"), "refusal");
    assert.equal(reasonFor("novel", { content: "so" }), "other");
  });

  test("are tool_use when there are calls, unless the answer was cut off or refused", () => {
    for (const raw of ["stop", "tool_calls", "novel"]) assert.equal(reasonFor(raw, toolCall), "tool_use", raw);
    assert.equal(reasonFor("length", toolCall), "max_tokens");
    assert.equal(reasonFor("content_filter", toolCall), "refusal");
  });

  test("are a refusal with the text of the refusal field", () => {
    const reply = replyTo([piece({ refusal: "I will" }), piece({ refusal: " not" }), stop("stop")]);
    assert.equal(reply.stopReason, "refusal");
    assert.deepEqual(reply.parts, [{ type: "text", text: "I will not" }]);
  });

  test("are read at the end, also when empty until then", () => {
    const builder = builderOf();
    builder.add(event(piece({ content: "so" }, "")));
    assert.equal(builder.complete, false);
    builder.add(event(stop("stop")));
    assert.equal(builder.complete, true);
  });

  test("may be missing when the stream is marked as done", () => {
    const builder = builderOf();
    for (const chunk of [piece({ content: "so" }), "[DONE]"]) builder.add(event(chunk));
    assert.equal(builder.complete, true);
    assert.equal(builder.reply().rawStopReason, "none");
  });
});

describe("usage", () => {
  test("counts cached tokens separately from the rest of the prompt", () => {
    const usage = { prompt_tokens: 100, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 60 } };
    assert.deepEqual(replyTo([stop("stop"), { choices: [], usage }]).usage, {
      inputTokens: 40,
      outputTokens: 7,
      cacheReadTokens: 60,
      cacheWriteTokens: 0,
    });
  });

  test("reports reasoning tokens", () => {
    const usage = { prompt_tokens: 1, completion_tokens: 7, completion_tokens_details: { reasoning_tokens: 5 } };
    assert.equal(replyTo([stop("stop"), { choices: [], usage }]).usage?.reasoningTokens, 5);
  });

  test("is unknown, not zero, when absent, null or invalid", () => {
    const nonsense = { prompt_tokens: -1, completion_tokens: 0.5, prompt_tokens_details: { cached_tokens: "all" } };
    for (const usage of [undefined, null, {}, nonsense, "none"])
      assert.deepEqual(replyTo([{ ...stop("stop"), usage }]).usage, null);
  });
});

describe("errors", () => {
  const failureOf = (run: () => unknown): ModelFailure | undefined => {
    try {
      run();
    } catch (error) {
      return error instanceof ModelError ? error.failure : undefined;
    }
    return undefined;
  };
  const inStream = (data: unknown, name = "") =>
    failureOf(() => builderOf().add({ name, data: typeof data === "string" ? data : JSON.stringify(data) }));

  test("end the stream, in each server's format", () => {
    assert.equal(inStream({ error: { message: "The server had an error", type: "server_error" } }), "server");
    assert.equal(inStream({ error: { message: "no slots", code: 503 }, choices: [{ delta: {} }] }), "overloaded");
    assert.equal(inStream({ error: { message: "slow down", code: "rate_limit_exceeded" } }), "rate_limit");
    assert.equal(inStream({ error: "The model has crashed" }), "server");
    assert.equal(inStream({ object: "error", message: "bad", type: "BadRequestError", code: 400 }), "invalid");
    assert.equal(inStream({ message: "crashed" }, "error"), "server");
    assert.equal(inStream("crashed", "error"), "server");
    assert.equal(inStream(stop("error")), "server");
  });

  test("are not detected in valid chunks", () => {
    assert.equal(inStream({ ...piece({ content: "error" }), error: null }), undefined);
    assert.equal(inStream({ prompt_progress: 0.5 }), undefined);
  });

  test("are a lost connection for an incomplete event", () => {
    assert.equal(inStream('{"choices":[{"delta":{"con'), "connection");
  });

  test("are reported and not retried for another format", () => {
    assert.equal(inStream({ choices: [{ delta: { content: 5 } }] }), "invalid");
  });

  const status = (code: number, body: unknown, headers: Record<string, string> = {}) =>
    rejectedRequest(
      { status: code, statusText: "Said", headers: new Headers(headers) },
      typeof body === "string" ? body : JSON.stringify(body),
      "OPENAI_BASE_URL",
    );
  const failure = (code: number, message: string, more: Record<string, unknown> = {}) =>
    status(code, { error: { message, ...more } }).failure;

  test("of a full window are recognised in each server's wording", () => {
    for (const message of [
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
      "request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it",
      "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens",
      "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)",
      "The decoder prompt (length 9000) is longer than the maximum model length of 8192",
      "input length exceeds the context length",
      "prompt too long; exceeded max context length by 5 tokens",
      "Context size has been exceeded.",
    ])
      for (const code of [400, 500]) assert.equal(failure(code, message), "context_overflow", message);
    assert.equal(failure(400, "no", { code: "context_length_exceeded" }), "context_overflow");
    assert.equal(failure(413, "no"), "context_overflow");
    assert.equal(failure(500, "context deadline exceeded"), "server");
  });

  // design: 000.12d
  test("are retried only where that may help", () => {
    assert.equal(failure(401, "no"), "auth");
    assert.equal(failure(403, "no"), "auth");
    assert.equal(failure(402, "no"), "spend_limit");
    assert.equal(failure(429, "You exceeded your current quota", { type: "insufficient_quota" }), "spend_limit");
    assert.equal(failure(429, "slow down"), "rate_limit");
    assert.equal(failure(503, "Loading model"), "overloaded");
    for (const code of [408, 409, 500, 502, 504]) assert.equal(failure(code, "no"), "server", String(code));
    assert.equal(failure(404, "The model `gpt-9` does not exist", { code: "model_not_found" }), "unknown_model");
    assert.equal(failure(404, "model 'llama9' not found"), "unknown_model");
    for (const code of [400, 404, 422]) assert.equal(failure(code, "no"), "invalid", String(code));
  });

  test("contain the server's message in any format", () => {
    assert.equal(status(400, { error: { message: "why" } }).message, "why");
    assert.equal(status(400, { error: "why" }).message, "why");
    assert.equal(status(400, { detail: "why" }).message, "why");
    assert.equal(status(400, "why\n").message, "why");
    assert.equal(status(502, "<html>…</html>").message, "the model's server returned 502 Said");
    assert.equal(status(500, "").message, "the model's server returned 500 Said");
    assert.match(status(404, "404 page not found").message, /\/v1/);
  });

  test("contain the delay in each variant of the header", () => {
    const wait = (headers: Record<string, string>) => status(429, "", headers).retryAfterMs;
    assert.equal(wait({ "retry-after": "3" }), 3_000);
    assert.equal(wait({ "retry-after-ms": "250", "retry-after": "3" }), 250);
    assert.equal(wait({ "retry-after": "Thu, 01 Jan 1970 00:00:00 GMT" }), 0);
    for (const none of ["", "soon", "-1"]) assert.equal(wait({ "retry-after": none }), undefined, none);
  });
});

describe("the stream's bytes", () => {
  const encoder = new TextEncoder();
  const parse = (blocks: Iterable<Uint8Array>): SseEvent[] => {
    const parser = new SseParser();
    return [...Array.from(blocks).flatMap((block) => parser.push(block)), ...parser.end()];
  };

  test("may contain comments, named events, several lines, and no final blank line", () => {
    const stream =
      ': ping\n\nevent: error\ndata: {"a":\ndata: 1}\nid: 7\n\ndata:x\r\n\r\nerror: {"b":1}\n\ndata: [DONE]\n';
    assert.deepEqual(parse([encoder.encode(stream)]), [
      { name: "error", data: '{"a":\n1}' },
      { name: "", data: "x" },
      { name: "error", data: '{"b":1}' },
      { name: "", data: "[DONE]" },
    ]);
  });

  const cuts = fc.array(fc.nat(), { maxLength: 40 });
  const cut = (bytes: Uint8Array, at: number[]): Uint8Array[] => {
    const ends = [...new Set(at.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
    return [0, ...ends].map((start, index) => bytes.subarray(start, ends[index] ?? bytes.length));
  };

  // design: 003.40
  test("produce the same events however they are split", () => {
    const name = fc.constantFrom("", "error");
    const data = fc.array(fc.constantFrom("", "a", "é: 日", "🎌"), { minLength: 1, maxLength: 3 });
    const events = fc.array(fc.record({ name, data }), { maxLength: 4 });
    fc.assert(
      fc.property(events, fc.constantFrom("\n", "\r\n", "\r"), cuts, (sent, eol, at) => {
        const lines = sent.flatMap((each) => [`event: ${each.name}`, ...each.data.map((line) => `data: ${line}`), ""]);
        const stream = lines.map((line) => line + eol).join("");
        assert.deepEqual(
          parse(cut(encoder.encode(stream), at)),
          sent.map((each) => ({ name: each.name, data: each.data.join("\n") })),
        );
      }),
      { numRuns: propertyRuns(500) },
    );
  });

  const words = fc.string({ unit: "grapheme", maxLength: 12 });

  test("produce the same reply when split inside characters and line ends", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ reasoning: words, content: words }), { maxLength: 6 }),
        fc.array(fc.array(words, { minLength: 1, maxLength: 4 }), { maxLength: 3 }),
        fc.constantFrom("\n", "\r\n", "\r"),
        fc.boolean(),
        cuts,
        (said, inputs, eol, keepAlive, at) => {
          const chunks: Chunk[] = [
            ...said.map((delta) => piece(delta)),
            ...inputs.flatMap((fragments, index) =>
              fragments.map((fragment, n) =>
                piece({
                  tool_calls: [
                    {
                      index,
                      ...(n === 0 ? { id: `c${index}` } : {}),
                      function: n === 0 ? { name: "read", arguments: fragment } : { arguments: fragment },
                    },
                  ],
                }),
              ),
            ),
            stop("stop"),
            "[DONE]",
          ];
          const comment = keepAlive ? `: still here €${eol}${eol}` : "";
          const stream = chunks.map((chunk) => `${comment}data: ${event(chunk).data}${eol}${eol}`).join("");
          const builder = builderOf();
          for (const each of parse(cut(encoder.encode(stream), at))) builder.add(each);
          const { parts, stopReason } = builder.reply();
          assert.equal(builder.done, true);
          assert.deepEqual(parts, replyTo(chunks).parts);
          const wanted = said.map((delta) => delta.content).join("");
          const text = parts.find((part) => part.type === "text")?.text;
          assert.equal(text, wanted.trim() === "" ? undefined : wanted);
          assert.equal(stopReason, inputs.length > 0 ? "tool_use" : "end_turn");
        },
      ),
      { numRuns: propertyRuns(500) },
    );
  });

  const callsOfAnyServer = fc.record({
    style: fc.constantFrom("openai", "index 0", "no index", "object", "new ids"),
    ids: fc.constantFrom("own", "same", "none"),
    wanted: fc.array(
      fc.record({ name: fc.constantFrom("read", "ls"), args: fc.dictionary(words, words, { maxKeys: 3 }) }),
      { minLength: 1, maxLength: 4 },
    ),
    at: fc.nat(),
  });

  test("give every call its arguments and a unique id in every server's style", () => {
    fc.assert(
      fc.property(callsOfAnyServer, ({ style, ids, wanted, at }) => {
        const deltas = wanted.flatMap<Record<string, unknown>>(({ name, args }, n) => {
          const id = ids === "none" ? {} : { id: ids === "same" ? "same" : `id${n}` };
          const json = JSON.stringify(args);
          const middle = at % json.length;
          if (style === "object") return [{ index: 0, ...id, function: { name, arguments: args } }];
          if (style === "no index") return [{ ...id, function: { name, arguments: json } }];
          if (style === "index 0") return [{ index: 0, ...id, function: { name, arguments: json } }];
          return [
            { index: n, ...id, function: { name, arguments: json.slice(0, middle) } },
            {
              index: n,
              ...(style === "new ids" ? { id: `other${n}` } : {}),
              function: { arguments: json.slice(middle) },
            },
          ];
        });
        const got = called(...deltas);
        assert.deepEqual(
          got.map((each) => [each.name, each.input]),
          wanted.map(({ name, args }) => [name, JSON.stringify(args)]),
        );
        assert.equal(new Set(got.map((each) => each.id)).size, wanted.length);
      }),
      { numRuns: propertyRuns(500) },
    );
  });
});
