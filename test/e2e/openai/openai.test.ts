// The published `openai` client against a cluster with the default settings: chat completions and the Responses API.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import OpenAI, { APIError, AuthenticationError, BadRequestError, NotFoundError } from "openai";
import { apiClient, Cleanup, startTestCluster, type ApiClient } from "@parley/testing";
import { pollUntil } from "@parley/testing/until";
import { pixel, saidIn, sessionOf } from "./support/session.ts";

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

async function refusal(request: Promise<unknown>): Promise<APIError> {
  const error = await request.then(
    () => null,
    (failure: unknown) => failure,
  );
  assert.ok(error instanceof APIError, "the request is not refused");
  return error;
}

const user = (content: string) => ({ role: "user" as const, content });

describe("chat completions", () => {
  test("answers a message with its usage", async () => {
    const answer = await openai.chat.completions.create({ model, messages: [user("usage: 7 3\nsay: hello")] });
    assert.deepEqual(
      [answer.choices[0]?.message.content, answer.choices[0]?.finish_reason, answer.model],
      ["hello", "stop", model],
    );
    const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = answer.usage ?? {};
    assert.deepEqual([prompt, completion, total], [7, 3, 10]);
  });

  test("streams the answer and its usage", async () => {
    const messages = [user("usage: 7 3\nwords: 5")];
    const stream = await openai.chat.completions.create({
      model,
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    const pieces: string[] = [];
    let tokens = 0;
    for await (const chunk of stream) {
      pieces.push(chunk.choices[0]?.delta.content ?? "");
      tokens += chunk.usage?.total_tokens ?? 0;
    }
    assert.equal(pieces.join(""), "word1 word2 word3 word4 word5");
    assert.ok(pieces.filter((piece) => piece !== "").length > 1);
    assert.equal(tokens, 10);
  });

  test("gives system and developer messages and the earlier conversation to the agent", async () => {
    const { id } = await openai.chat.completions.create({
      model,
      messages: [
        { role: "system", content: "Answer in French." },
        { role: "developer", content: "Be brief." },
        user("say: one\ntwo"),
        { role: "assistant", content: "un" },
        user("say: deux"),
      ],
    });
    const [parts, ...others] = await saidIn(client, await sessionOf(client, id));
    assert.deepEqual(others, []);
    assert.deepEqual(
      parts?.map(({ text }) => text),
      [
        "[Instructions of the program that sent this message]\nAnswer in French.\n\nBe brief.",
        "[Earlier messages of this conversation, sent by the calling program]\nuser: say: one\n  two\nassistant: un",
        "say: deux",
      ],
    );
  });

  test("begins a session for each request without a user, and keeps that of a user", async () => {
    const ask = async (text: string, name?: string) => {
      const named = name === undefined ? {} : { user: name };
      const { id } = await openai.chat.completions.create({ model, messages: [user(text)], ...named });
      return sessionOf(client, id);
    };
    const own = [await ask("say: one"), await ask("say: two")];
    assert.notEqual(own[0], own[1]);
    assert.equal(await ask("say: three", "ann"), await ask("say: four", "ann"));
  });

  test("does not repeat the history of a named conversation", async () => {
    const request = { model, user: "bea" };
    const messages = [user("say: one")];
    await openai.chat.completions.create({ ...request, messages });
    const history = [...messages, { role: "assistant" as const, content: "one" }, user("say: two")];
    const { id } = await openai.chat.completions.create({ ...request, messages: history });
    const said = await saidIn(client, await sessionOf(client, id));
    assert.deepEqual(
      said.at(-1)?.map(({ text }) => text),
      ["say: two"],
    );
  });

  test("gives concurrent callers the answer to their own input", async () => {
    const names = ["a", "b", "c", "d"];
    const answers = await Promise.all(
      names.map(async (name, at) => {
        const messages = [user(`tool: exec {"command":"sleep 0.3"}\nthen\nsay: ${name}`)];
        const answer = await openai.chat.completions.create({ model, messages, ...(at < 2 ? {} : { user: name }) });
        return answer.choices[0]?.message.content;
      }),
    );
    assert.deepEqual(answers, names);
  });

  test("stores an image and a file of a message, and refuses remote addresses", async () => {
    const text = { type: "text", text: "say: seen" } as const;
    const image = { type: "image_url", image_url: { url: pixel } } as const;
    const file_data = `data:application/pdf;base64,${Buffer.from("%PDF-1.4\n%%EOF\n").toString("base64")}`;
    const file = { type: "file", file: { filename: "a.pdf", file_data } } as const;
    const messages = [{ role: "user" as const, content: [text, image, file] }];
    const { id } = await openai.chat.completions.create({ model, messages });
    const [parts] = await saidIn(client, await sessionOf(client, id));
    assert.deepEqual(
      parts?.map(({ mediaType }) => mediaType),
      [undefined, "image/png", "application/pdf"],
    );
    const remote = { type: "image_url", image_url: { url: "https://example.org/a.png" } } as const;
    const error = await refusal(
      openai.chat.completions.create({ model, messages: [{ role: "user", content: [text, remote] }] }),
    );
    assert.deepEqual([error.status, error.param], [400, "messages.0.content.1"]);
    assert.match(error.message, /only base64 data URLs/);
  });

  test("refuses what the agent cannot do, and names the field", async () => {
    const messages = [user("say: never")];
    const tools = [{ type: "function", function: { name: "f", parameters: {} } }] as const;
    for (const [more, param] of [
      [{ tools: [...tools] }, "tools"],
      [{ n: 2 }, "n"],
      [{ tool_choice: "required" }, "tool_choice"],
      [{ logprobs: true }, "logprobs"],
      [{ modalities: ["text", "audio"] }, "modalities"],
      [{ messages: [{ role: "tool", tool_call_id: "a", content: "x" }, ...messages] }, "messages.0"],
      [{ messages: [...messages, { role: "assistant", content: "so" }] }, "messages"],
    ] as const) {
      const error = await refusal(
        openai.chat.completions.create({ model, messages, ...(more as object) } as { model: string; messages: [] }),
      );
      assert.deepEqual([error.status, error.param], [400, param]);
    }
  });

  test("reports a failed turn as an error that is not retried", async () => {
    const messages = [user("fail: auth always\nsay: never")];
    const error = await refusal(openai.chat.completions.create({ model, messages }, { maxRetries: 2 }));
    assert.deepEqual([error.status, error.code], [502, "turn_failed"]);
  });
});

test("returns errors as the client's classes, with status and code", async () => {
  const request = { model, messages: [user("say: never")] };
  const stranger = openai.withOptions({ apiKey: "wrong" });
  const unknown = await refusal(stranger.chat.completions.create(request));
  assert.ok(unknown instanceof AuthenticationError);
  const wrong = await refusal(openai.chat.completions.create({ ...request, n: 2 }));
  assert.ok(wrong instanceof BadRequestError);
  assert.equal(wrong.type, "invalid_request_error");
  const missing = await refusal(openai.embeddings.create({ model, input: "never" }));
  assert.ok(missing instanceof NotFoundError);
  assert.equal(missing.code, "no_such_route");
});

test("lists the agent as the only model", async () => {
  const models = await openai.models.list();
  assert.deepEqual(
    models.data.map(({ id }) => id),
    [model],
  );
  assert.equal((await openai.models.retrieve(model)).owned_by, "parley");
  assert.equal((await refusal(openai.models.retrieve("gpt-5"))).status, 404);
});

describe("responses", () => {
  test("creates a response from a text, with usage", async () => {
    const response = await openai.responses.create({ model, input: "usage: 7 3\nsay: hello" });
    assert.deepEqual([response.output_text, response.status, response.object], ["hello", "completed", "response"]);
    assert.deepEqual([response.usage?.input_tokens, response.usage?.output_tokens], [7, 3]);
    const again = await openai.responses.retrieve(response.id);
    assert.deepEqual([again.output_text, again.id, again.status], ["hello", response.id, "completed"]);
  });

  test("streams the standard events in order", async () => {
    const stream = await openai.responses.create({ model, input: "words: 4", stream: true });
    const types: string[] = [];
    let text = "";
    let numbers = 0;
    for await (const event of stream) {
      if (types.at(-1) !== event.type) types.push(event.type);
      assert.equal(event.sequence_number, numbers++);
      if (event.type === "response.output_text.delta") text += event.delta;
      if (event.type === "response.completed") assert.equal(event.response.output_text ?? text, text);
    }
    assert.equal(text, "word1 word2 word3 word4");
    assert.deepEqual(types, [
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ]);
  });

  test("collects a streamed response with the client's helper", async () => {
    const stream = openai.responses.stream({ model, input: "words: 3" });
    const response = await stream.finalResponse();
    assert.equal(response.output_text, "word1 word2 word3");
  });

  test("continues the session of the previous response", async () => {
    const first = await openai.responses.create({ model, input: "say: one" });
    const second = await openai.responses.create({ model, input: "say: two", previous_response_id: first.id });
    assert.equal(second.previous_response_id, first.id);
    assert.equal(await sessionOf(client, second.id), await sessionOf(client, first.id));
  });

  test("copies the session when an earlier response is continued", async () => {
    const first = await openai.responses.create({ model, input: "say: one" });
    await openai.responses.create({ model, input: "say: two", previous_response_id: first.id });
    const branch = await openai.responses.create({ model, input: "say: three", previous_response_id: first.id });
    const session = await sessionOf(client, branch.id);
    assert.notEqual(session, await sessionOf(client, first.id));
    const said = await saidIn(client, session);
    assert.deepEqual(
      said.map((parts) => parts.at(-1)?.text),
      ["say: one", "say: three"],
    );
  });

  test("gives each of several concurrent continuations a session without the others", async () => {
    const first = await openai.responses.create({ model, input: "say: one" });
    const texts = ["say: two", "say: three", "say: four"];
    const responses = await Promise.all(
      texts.map((input) => openai.responses.create({ model, input, previous_response_id: first.id })),
    );
    const sessions = await Promise.all(responses.map(({ id }) => sessionOf(client, id)));
    const said = await Promise.all(sessions.map((session) => saidIn(client, session)));
    assert.deepEqual(
      said.map((messages) => messages.map((parts) => parts.at(-1)?.text)),
      texts.map((text) => ["say: one", text]),
    );
  });

  test("uses instructions, earlier items and images", async () => {
    const { id } = await openai.responses.create({
      model,
      instructions: "Answer in French.",
      input: [
        { role: "user", content: "say: one" },
        { role: "assistant", content: "un" },
        {
          role: "user",
          content: [
            { type: "input_text", text: "say: deux" },
            { type: "input_image", image_url: pixel, detail: "auto" },
          ],
        },
      ],
    });
    const [parts] = await saidIn(client, await sessionOf(client, id));
    assert.deepEqual(
      parts?.map(({ text, mediaType }) => text ?? mediaType),
      [
        "[Instructions of the program that sent this message]\nAnswer in French.",
        "[Earlier messages of this conversation, sent by the calling program]\nuser: say: one\nassistant: un",
        "say: deux",
        "image/png",
      ],
    );
  });

  test("refuses unsupported options, and names the field", async () => {
    for (const [more, param] of [
      [{ tools: [{ type: "web_search" }] }, "tools"],
      [{ store: false }, "store"],
      [{ text: { format: { type: "grammar" } } }, "text.format"],
      [{ tool_choice: { type: "web_search" } }, "tool_choice"],
      [{ conversation: "conv_1" }, "conversation"],
      [{ previous_response_id: "resp_1" }, "previous_response_id"],
      [{ input: [{ type: "function_call_output", call_id: "a", output: "b" }] }, "input.0"],
    ] as const) {
      const error = await refusal(openai.responses.create({ model, input: "say: never", ...(more as object) }));
      assert.deepEqual([error.status, error.param], [400, param], error.message);
    }
    const unknown = "resp_00000000-0000-4000-8000-000000000000";
    assert.equal((await refusal(openai.responses.retrieve(unknown))).status, 404);
    const lost = openai.responses.create({ model, input: "say: never", previous_response_id: unknown });
    assert.equal((await refusal(lost)).status, 404);
  });

  test("gives concurrent callers the answer to their own input", async () => {
    const names = ["a", "b", "c"];
    const answers = await Promise.all(
      names.map(async (name) => {
        const input = `tool: exec {"command":"sleep 0.3"}\nthen\nsay: ${name}`;
        return (await openai.responses.create({ model, input })).output_text;
      }),
    );
    assert.deepEqual(answers, names);
  });

  test("reports a failed turn as a failed response of the stream", async () => {
    const stream = await openai.responses.create({ model, input: "fail: auth always", stream: true });
    let last: string | undefined;
    for await (const event of stream) last = event.type;
    assert.equal(last, "response.failed");
  });
});

describe("background responses", () => {
  const background = true;
  const begins = (id: string) =>
    pollUntil(async () => (await openai.responses.retrieve(id)).status === "in_progress", `${id} to begin`);

  test("returns immediately, and the answer is read when the turn has ended", async () => {
    const response = await openai.responses.create({ model, input: "say: later", background });
    assert.deepEqual([response.status, response.background, response.output], ["queued", true, []]);
    await client.settled(response.id.replace("resp_", ""));
    const ended = await openai.responses.retrieve(response.id);
    assert.deepEqual([ended.status, ended.output_text], ["completed", "later"]);
  });

  test("stops a running response, and withdraws a queued one", async () => {
    const request = { model, input: "wait: 200\nwords: 1000", background, user: "cancelled" };
    const first = await openai.responses.create(request);
    await begins(first.id);
    const second = await openai.responses.create(request);
    assert.equal((await openai.responses.retrieve(second.id)).status, "queued");
    for (const { id } of [second, first, first]) {
      const { status, output } = await openai.responses.cancel(id);
      assert.deepEqual([status, output], ["cancelled", []]);
    }
    assert.equal((await openai.responses.retrieve(second.id)).status, "cancelled");
  });

  test("reports a stopped response to the caller that waits for it", async () => {
    const stream = await openai.responses.create({ model, input: "wait: 200\nwords: 1000", stream: true });
    let status: string | undefined;
    for await (const event of stream) {
      if (event.type === "response.created") void openai.responses.cancel(event.response.id);
      if ("response" in event) ({ status } = event.response);
    }
    assert.equal(status, "cancelled");
  });

  test("returns a response that has ended as it is when it is cancelled", async () => {
    const { id } = await openai.responses.create({ model, input: "say: done" });
    const { status, output } = await openai.responses.cancel(id);
    assert.equal(status, "completed");
    assert.match(JSON.stringify(output), /"text":"done"/);
    const unknown = openai.responses.cancel("resp_00000000-0000-4000-8000-000000000000");
    assert.equal((await refusal(unknown)).status, 404);
  });
});
