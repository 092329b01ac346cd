import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Part, ToolDescriptor } from "@parley/contracts";
import {
  initialDialect,
  initialLimit,
  learnDialect,
  learnLimit,
  type Dialect,
  type OutputLimit,
  type Sent,
} from "../src/model/openai/dialect.ts";
import { toRequest } from "../src/model/openai/wire.ts";
import type { ModelRequest, PromptMessage } from "../src/model/provider.ts";

const limit: OutputLimit = { field: "max_tokens", atMostTokens: Number.POSITIVE_INFINITY };
const text = (said: string): Part => ({ type: "text", text: said });
const call = (id: string, input = "{}"): Part => ({ type: "tool_call", id, name: "read", input });
const result = (id: string, content: string, isError = false): Part => ({
  type: "tool_result",
  id,
  name: "read",
  content,
  isError,
});
const tool: ToolDescriptor = {
  name: "now",
  description: "The time.",
  inputSchema: {},
  class: "pure",
  readOnly: true,
  risk: "none",
  effects: [],
  resource: { kind: "none" },
  aliases: [],
  summary: "Read.",
  timeoutMs: 1,
};

const dialect = initialDialect("http://127.0.0.1:11434/v1");
const wire = (messages: PromptMessage[], tools: ToolDescriptor[] = []) =>
  toRequest({ system: "be kind", tools, messages, maxOutputTokens: 100 }, "m", limit, dialect);
const sent = (...parts: Part[]) => wire([{ role: "user", parts }]).messages.slice(1);
const written = (...parts: Part[]) => wire([{ role: "assistant", parts }]).messages.slice(1);

describe("the request", () => {
  test("starts with the system prompt, streams and requests the usage", () => {
    assert.deepEqual(wire([{ role: "user", parts: [text("hi")] }]), {
      model: "m",
      messages: [
        { role: "system", content: "be kind" },
        { role: "user", content: "hi" },
      ],
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 100,
    });
  });

  // design: 001.30, 000.32c
  test("contains tools only if there are some, never strict, always with properties", () => {
    assert.equal("tools" in wire([]), false);
    assert.deepEqual(wire([], [tool]).tools, [
      {
        type: "function",
        function: { name: "now", description: "The time.", parameters: { type: "object", properties: {} } },
      },
    ]);
  });

  test("contains one message per tool result, in order and before the user's text", () => {
    assert.deepEqual(sent(text("go on"), result("a", "1"), result("b", "")), [
      { role: "tool", tool_call_id: "a", content: "1" },
      { role: "tool", tool_call_id: "b", content: "(no output)" },
      { role: "user", content: "go on" },
    ]);
  });

  test("prefixes the text of an error result, which the format cannot mark", () => {
    assert.deepEqual(sent(result("a", "gone", true)), [{ role: "tool", tool_call_id: "a", content: "Error: gone" }]);
  });

  test("keeps a call's arguments byte for byte, or an empty object if they are not an object", () => {
    const argumentsOf = (input: string) => {
      const [message] = written(call("a", input));
      return message?.role === "assistant" ? message.tool_calls?.[0]?.function.arguments : undefined;
    };
    assert.equal(argumentsOf('{ "a" : 1.0 }'), '{ "a" : 1.0 }');
    for (const unusable of ["", "{", "[1]", "null", '"{}"']) assert.equal(argumentsOf(unusable), "{}", unusable);
  });

  test("never contains reasoning, other providers' blocks or the finish part", () => {
    const hidden: Part[] = [
      { type: "reasoning", text: "hm", signature: "s" },
      { type: "provider", provider: "anthropic", raw: "{}" },
      { type: "finish", reason: "stop", at: "2026-01-01T00:00:00Z" },
    ];
    assert.deepEqual(written(...hidden, text("so"), call("a")), [
      {
        role: "assistant",
        content: "so",
        tool_calls: [{ id: "a", type: "function", function: { name: "read", arguments: "{}" } }],
      },
    ]);
    assert.deepEqual(written(...hidden), []);
  });

  test("contains null as the text of a message with calls only", () => {
    assert.equal(written(call("a"))[0]?.content, null);
  });

  test("shows images as data URLs and names everything else as text", () => {
    assert.deepEqual(
      sent(
        text("look"),
        { type: "binary", mediaType: "image/png", data: "AAAA" },
        { type: "binary", mediaType: "application/pdf", name: "a.pdf", data: "AAAA" },
      ),
      [
        {
          role: "user",
          content: [
            { type: "text", text: "look" },
            { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
            { type: "text", text: "[attachment a.pdf, application/pdf: this type cannot be shown to you]" },
          ],
        },
      ],
    );
  });

  test("joins texts into one string, because not every server accepts lists", () => {
    assert.deepEqual(sent(text("a"), text(""), text("b")), [{ role: "user", content: "a\n\nb" }]);
  });

  // design: 000.32b
  test("shortens ids over OpenAI's 40 characters in calls and results alike", () => {
    const id = `chatcmpl-tool-${"0".repeat(32)}`;
    const { messages } = wire([
      { role: "assistant", parts: [call(id), call(`${id}1`)] },
      { role: "user", parts: [result(id, "r"), result(`${id}1`, "s")] },
    ]);
    const calls = messages.flatMap((each) => (each.role === "assistant" ? (each.tool_calls ?? []) : []));
    const answered = messages.flatMap((each) => (each.role === "tool" ? [each.tool_call_id] : []));
    assert.deepEqual(
      calls.map((each) => each.id),
      answered,
    );
    assert.equal(new Set(answered).size, 2);
    for (const shortened of answered) assert.ok(shortened.length <= 40);
  });
});

describe("the output limit", () => {
  test("is max_completion_tokens at OpenAI and max_tokens elsewhere", () => {
    assert.equal(initialLimit("https://api.openai.com/v1").field, "max_completion_tokens");
    assert.equal(initialLimit("http://127.0.0.1:11434/v1").field, "max_tokens");
    assert.equal(initialLimit("https://openai.com.example.org/v1").field, "max_tokens");
  });

  test("changes its field when an error names the other one", () => {
    const refusal =
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    assert.deepEqual(learnLimit(refusal, limit, 16_384), { ...limit, field: "max_completion_tokens", lasting: true });
    assert.equal(learnLimit(refusal, { ...limit, field: "max_completion_tokens" }, 16_384), undefined);
  });

  test("is reduced permanently to what the model supports", () => {
    const refusal = "max_tokens is too large: 16384. This model supports at most 4096 completion tokens, whereas …";
    assert.deepEqual(learnLimit(refusal, limit, 16_384), { ...limit, atMostTokens: 4_096, lasting: true });
    assert.equal(learnLimit(refusal, limit, 4_096), undefined);
  });

  test("is reduced for this prompt to what fits in the window", () => {
    for (const refusal of [
      "This model's maximum context length is 8192 tokens. However, you requested 18384 tokens (2000 in the messages, 16384 in the completion).",
      "'max_tokens' or 'max_completion_tokens' is too large: 16384. This model's maximum context length is 8192 tokens and your request has 2000 input tokens (16384 > 8192 - 2000).",
    ])
      assert.deepEqual(learnLimit(refusal, limit, 16_384), { ...limit, atMostTokens: 6_192, lasting: false });
    const vague =
      "This model's maximum context length is 128000 tokens. However, you requested 65535 output tokens and your prompt contains at least 62466 input tokens, for a total of at least 128001 tokens.";
    assert.deepEqual(learnLimit(vague, limit, 65_535), { ...limit, atMostTokens: 32_767, lasting: false });
  });

  test("is unchanged when the prompt is too long, not the answer", () => {
    for (const refusal of [
      "This model's maximum context length is 8192 tokens. However, you requested 24384 tokens (8000 in the messages, 16384 in the completion).",
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
      "model not found",
      "",
    ])
      assert.equal(learnLimit(refusal, limit, 16_384), undefined, refusal);
  });
});

describe("optional fields", () => {
  const said: PromptMessage = { role: "user", parts: [text("hi")] };
  const pdf: Part = { type: "binary", mediaType: "application/pdf", name: "a.pdf", data: "JVBE" };
  const image: Part = { type: "binary", mediaType: "image/png", data: "iVBO" };
  const inDialect = (own: Partial<Dialect>, request: Partial<ModelRequest> = {}) =>
    toRequest({ system: "", tools: [], messages: [said], maxOutputTokens: 100, ...request }, "m", limit, {
      ...dialect,
      ...own,
    });
  const sentWith = (own: Partial<Sent>): Sent => ({
    effort: undefined,
    images: false,
    pdfs: false,
    stream: true,
    stops: false,
    ...own,
  });

  test("are sent only when set: effort and stop sequences, never a temperature", () => {
    assert.equal(JSON.stringify(inDialect({})).includes("reasoning_effort"), false);
    const request = inDialect({}, { effort: "xhigh", stopSequences: ["A", "B", "C", "D", "E"], cacheTtl: "1h" });
    assert.equal(request.reasoning_effort, "xhigh");
    assert.deepEqual(request.stop, ["A", "B", "C", "D"]);
    assert.equal("temperature" in request || "tool_choice" in request, false);
  });

  // design: 000.32
  test("are reduced to the next lower level, or omitted, when the server supports less", () => {
    assert.equal(inDialect({ efforts: ["low", "medium", "high"] }, { effort: "max" }).reasoning_effort, "high");
    assert.equal("reasoning_effort" in inDialect({ efforts: [] }, { effort: "low" }), false);
    assert.equal("reasoning_effort" in inDialect({ efforts: ["high"] }, { effort: "low" }), false);
  });

  test("contain a document part at OpenAI and a note elsewhere", () => {
    const shown = (own: Partial<Dialect>, part: Part) =>
      inDialect(own, { messages: [{ role: "user", parts: [part] }] }).messages[0]?.content;
    assert.equal(initialDialect("https://api.openai.com/v1").pdfs, true);
    assert.deepEqual(shown({ pdfs: true }, pdf), [
      { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBE" } },
    ]);
    assert.match(JSON.stringify(shown({}, pdf)), /a\.pdf.*cannot be shown/);
    assert.match(JSON.stringify(shown({ images: false }, image)), /image\/png.*cannot be shown/);
  });

  test("are learned from each server's error", () => {
    const learned = (refusal: string, own: Partial<Sent>) => learnDialect(refusal, dialect, sentWith(own));
    // llama.cpp, vLLM, Ollama.
    for (const refusal of [
      "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
      "At most 0 image(s) may be provided in one prompt.",
      "this model is missing data required for image input",
    ]) {
      assert.equal(learned(refusal, { images: true })?.images, false, refusal);
      assert.equal(learned(refusal, {}), undefined, refusal);
    }
    assert.deepEqual(
      learned("Unsupported value: 'reasoning_effort' does not support 'xhigh' with this model.", { effort: "xhigh" })
        ?.efforts,
      ["low", "medium", "high"],
    );
    assert.deepEqual(learned("Unknown parameter: 'reasoning_effort'.", { effort: "high" })?.efforts, []);
    assert.equal(learned("stream_options is not permitted", {})?.streamUsage, false);
    assert.equal(learned("Streaming is not supported with tools", {})?.stream, false);
    assert.equal(
      learned("Unsupported parameter: 'stop' is not supported with this model.", { stops: true })?.stops,
      false,
    );
    assert.equal(learned("messages: at least one message is required", { effort: "low", images: true }), undefined);
    for (const refusal of [
      "You uploaded an unsupported image. Please make sure your image is valid.",
      "The image data you provided does not represent a valid image.",
      "cannot identify image file <_io.BytesIO object at 0x7f>",
    ]) {
      assert.equal(learned(refusal, { images: true }), undefined, refusal);
    }
  });

  test("are not sent again at a refused level", () => {
    let known = dialect;
    for (let refusals = 0; refusals < 2; refusals++) {
      const next = learnDialect("Invalid value for reasoning_effort", known, sentWith({ effort: "high" }));
      assert.ok(next !== undefined && next.efforts.length < known.efforts.length);
      known = next;
    }
    assert.deepEqual(known.efforts, []);
  });

  test("omit stream options without a stream, because servers reject them", () => {
    const { stream, stream_options: options } = inDialect({ stream: false });
    assert.deepEqual([stream, options], [false, undefined]);
  });
});
