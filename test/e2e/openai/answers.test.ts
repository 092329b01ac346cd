// The published `openai` client against a cluster: answers in JSON, stop sequences and limits of output tokens.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import OpenAI, { APIError } from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { apiClient, Cleanup, startTestCluster, type ApiClient } from "@parley/testing";
import { z } from "zod";

const cleanup = new Cleanup();
let openai: OpenAI;
let client: ApiClient;
const model = "parley";

before(async () => {
  const cluster = await startTestCluster(cleanup, { processes: [] });
  client = apiClient(cluster.httpUrls, cluster.token);
  openai = new OpenAI({ baseURL: `${cluster.httpUrls[0]}/v1`, apiKey: cluster.token, maxRetries: 0 });
});
after(() => cleanup[Symbol.asyncDispose]());

type Options = Partial<OpenAI.ChatCompletionCreateParamsNonStreaming>;

async function ask(text: string, options: Options = {}) {
  const messages = [{ role: "user" as const, content: text }];
  const { choices, usage, id } = await openai.chat.completions.create({ model, messages, ...options });
  const turn = await client.settled(id.replace("chatcmpl-", ""));
  return { text: choices[0]?.message.content, finish: choices[0]?.finish_reason, usage, turn };
}

/** The pieces of a streamed answer, and how it ended. */
async function streamed(text: string, options: Options = {}) {
  const messages = [{ role: "user" as const, content: text }];
  const stream = await openai.chat.completions.create({ model, messages, ...options, stream: true });
  let finish: string | null | undefined;
  const pieces: string[] = [];
  for await (const { choices } of stream) {
    const piece = choices[0]?.delta.content ?? "";
    if (piece !== "") pieces.push(piece);
    finish = choices[0]?.finish_reason ?? finish;
  }
  return { pieces, text: pieces.join(""), finish };
}

async function refusal(request: Promise<unknown>): Promise<APIError> {
  const error = await request.then(
    () => null,
    (failure: unknown) => failure,
  );
  assert.ok(error instanceof APIError, "the request is not refused");
  return error;
}

const City = z.object({ name: z.string(), people: z.number().int() });
const bern = { name: "Bern", people: 134_000 };
const inTwoAttempts = `say: It is Bern.\nthen\nsay: ${JSON.stringify(bern)}`;

describe("answers in JSON", () => {
  test("requests an answer again until it matches the schema, in the same turn", async () => {
    const completion = await openai.chat.completions.parse({
      model,
      messages: [{ role: "user", content: inTwoAttempts }],
      response_format: zodResponseFormat(City, "city"),
    });
    assert.deepEqual(completion.choices[0]?.message.parsed, bern);
    const response = await openai.responses.parse({
      model,
      input: inTwoAttempts,
      text: { format: zodTextFormat(City, "city") },
    });
    assert.deepEqual(response.output_parsed, bern);
    const turn = await client.settled(response.id.replace("resp_", ""));
    assert.equal(turn.modelSteps, 2);
    assert.deepEqual(JSON.parse(turn.text ?? ""), bern);
  });

  test("streams nothing but the answer that matches", async () => {
    const { text, finish } = await streamed(inTwoAttempts, { response_format: zodResponseFormat(City, "city") });
    assert.deepEqual([JSON.parse(text), finish], [bern, "stop"]);
    const stream = openai.responses.stream({ model, input: inTwoAttempts, text: { format: zodTextFormat(City, "c") } });
    assert.deepEqual((await stream.finalResponse()).output_parsed, bern);
  });

  test("accepts any object for json_object, and removes a code fence", async () => {
    const fenced = 'say: ```json\nsay: {"a": [1]}\nsay: ```';
    const { text } = await ask(fenced, { response_format: { type: "json_object" } });
    assert.equal(text, '{"a": [1]}');
    const list = 'say: [1]\nthen\nsay: {"b": 2}';
    const response = await openai.responses.create({ model, input: list, text: { format: { type: "json_object" } } });
    assert.equal(response.output_text, '{"b": 2}');
  });

  test("fails without a retry of the client when no attempt matches", async () => {
    const request = { model, messages: [{ role: "user" as const, content: "say: no" }] };
    const response_format = zodResponseFormat(City, "city");
    const error = await refusal(openai.chat.completions.create({ ...request, response_format }, { maxRetries: 2 }));
    assert.deepEqual([error.status, error.code], [502, "turn_failed"]);
    assert.match(error.message, /does not match the required JSON schema, after 3 further attempts/);
  });

  test("refuses a format that cannot be required", async () => {
    for (const format of [
      { type: "grammar" },
      { type: "json_schema" },
      { type: "json_schema", json_schema: { name: "c", schema: { type: "bean" } } },
      { type: "json_schema", json_schema: { name: "c", schema: { type: "object", patternProperties: { a: {} } } } },
    ]) {
      const error = await refusal(ask("say: never", { response_format: format } as unknown as Options));
      assert.deepEqual([error.status, error.param, error.type], [400, "response_format", "invalid_request_error"]);
    }
  });
});

describe("stop sequences", () => {
  test("ends the answer before the first of them, complete and streamed", async () => {
    const script = "say: alpha beta gamma\nsay: END delta";
    for (const [stop, expected] of [
      ["END", "alpha beta gamma\n"],
      [["nothing", "ta ga", "END", "gamma"], "alpha be"],
      [["\n"], "alpha beta gamma"],
      ["none of it", "alpha beta gamma\nEND delta"],
      ["alpha", ""],
    ] as [string | string[], string][]) {
      const { text, finish, turn } = await ask(script, { stop });
      assert.deepEqual([text, finish, turn.text], [expected, "stop", expected]);
      const { text: shown, finish: end } = await streamed(script, { stop });
      assert.deepEqual([shown, end], [expected, "stop"]);
    }
  });

  test("does not end the calls of tools", async () => {
    const { text } = await ask("say: I look END\ntool: ls {}\nthen\nsay: seen END more", { stop: "END" });
    assert.equal(text, "seen ");
  });

  test("refuses more than four, and empty ones", async () => {
    for (const stop of [["a", "b", "c", "d", "e"], [""]]) {
      const error = await refusal(ask("say: never", { stop }));
      assert.deepEqual([error.status, error.param], [400, "stop"]);
    }
  });
});

describe("limits of output tokens", () => {
  test("cuts the answer with the finish reason length", async () => {
    for (const options of [{ max_completion_tokens: 3 }, { max_tokens: 3 }]) {
      const { text, finish } = await ask("words: 10", options);
      assert.deepEqual([text, finish], ["word1 word2 word3", "length"]);
    }
    const { text, finish } = await streamed("words: 10", { max_completion_tokens: 3 });
    assert.deepEqual([text, finish], ["word1 word2 word3", "length"]);
    assert.equal((await ask("words: 3", { max_completion_tokens: 3 })).finish, "stop");
  });

  test("counts all model calls of the turn", async () => {
    const script = "usage: 9 4\ntool: ls {}\nthen\nwords: 10";
    assert.equal((await ask(script, { max_completion_tokens: 6 })).text, "word1 word2");
    const none = await ask(script, { max_completion_tokens: 4 });
    assert.deepEqual([none.text, none.finish, none.turn.modelSteps], ["", "length", 1]);
  });

  test("ends a response as incomplete", async () => {
    const request = { model, input: "words: 10", max_output_tokens: 3 };
    const response = await openai.responses.create(request);
    const { status, incomplete_details: details, output_text: text, max_output_tokens: limit } = response;
    assert.deepEqual(
      [status, details?.reason, text, limit],
      ["incomplete", "max_output_tokens", "word1 word2 word3", 3],
    );
    const types: string[] = [];
    for await (const { type } of await openai.responses.create({ ...request, stream: true })) types.push(type);
    assert.equal(types.at(-1), "response.incomplete");
    const again = await openai.responses.retrieve(response.id);
    assert.deepEqual([again.status, again.output_text], ["incomplete", "word1 word2 word3"]);
  });

  test("refuses a limit that is not a positive number, and names the field", async () => {
    const error = await refusal(ask("say: never", { max_completion_tokens: 0 }));
    assert.deepEqual([error.status, error.param], [400, "max_completion_tokens"]);
  });
});

describe("pictures in answers", () => {
  const markdown = "Hi: ![a](http://c.example/?d=secret) `![b](c)`";
  const expected = "Hi: [a](http://c.example/?d=secret) `![b](c)`";
  const script = `say: ${markdown}`;

  test("are links, complete and streamed", async () => {
    assert.equal((await ask(script)).text, expected);
    assert.equal((await streamed(script)).text, expected);
    const response = await openai.responses.create({ model, input: script });
    assert.equal(response.output_text, expected);
    assert.equal((await openai.responses.retrieve(response.id)).output_text, expected);
    const stream = openai.responses.stream({ model, input: script });
    assert.equal((await stream.finalResponse()).output_text, expected);
  });

  test("stay in JSON, which no client shows as Markdown", async () => {
    const answer = JSON.stringify({ markdown });
    const { text } = await ask(`say: ${answer}`, { response_format: { type: "json_object" } });
    assert.equal(text, answer);
  });
});
