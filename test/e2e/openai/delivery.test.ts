// The published `openai` client against a cluster: request ids, aborted requests, and automatic retries.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import OpenAI, { APIError } from "openai";
import { apiClient, Cleanup, startTestCluster, type ApiClient, type TestCluster } from "@parley/testing";
import { pollUntil } from "@parley/testing/until";
import { saidIn, sessionOf } from "./support/session.ts";

const cleanup = new Cleanup();
let openai: OpenAI;
let client: ApiClient;
let cluster: TestCluster;
const model = "parley";

before(async () => {
  const env = { "channel-gateway": { PARLEY_LOG_LEVEL: "debug" } };
  cluster = await startTestCluster(cleanup, { processes: ["channel-gateway"], env });
  client = apiClient(cluster.httpUrls, cluster.token);
  openai = new OpenAI({ baseURL: `${cluster.httpUrls[0]}/v1`, apiKey: cluster.token, maxRetries: 0 });
});
after(() => cleanup[Symbol.asyncDispose]());

const user = (content: string) => ({ role: "user" as const, content });
const Main = "/api/sessions/main/messages?limit=200";

/** How often a text is a message of the session that named conversations share. */
async function sentTimes(text: string): Promise<number> {
  const said = JSON.stringify(await (await client.fetch(Main)).json());
  return said.split(JSON.stringify(text)).length - 1;
}

describe("request ids", () => {
  test("gives every answer an id of its own, also a streamed one", async () => {
    const messages = [user("say: hello")];
    const ids = [
      (await openai.chat.completions.create({ model, messages }))._request_id,
      (await openai.chat.completions.create({ model, messages, stream: true }).withResponse()).request_id,
      (await openai.responses.create({ model, input: "say: hello" }))._request_id,
      (await openai.models.list().withResponse()).request_id,
    ];
    for (const id of ids) assert.match(id ?? "", /^req_[0-9a-f-]{36}$/);
    assert.equal(new Set(ids).size, ids.length);
  });

  test("gives refusals an id that the log contains", async () => {
    for (const [request, status] of [
      [() => openai.chat.completions.create({ model, messages: [user("say: never")], n: 2 }), 400],
      [() => openai.withOptions({ apiKey: "wrong" }).models.list(), 401],
      [() => openai.responses.create({ model, input: "fail: auth always" }), 502],
    ] as const) {
      const error: unknown = await request().then(
        () => null,
        (failure: unknown) => failure,
      );
      assert.ok(error instanceof APIError);
      assert.equal(error.status, status);
      const id = error.requestID ?? "";
      assert.match(id, /^req_/);
      await pollUntil(() => cluster.lines.some((line) => line.includes(id)), `a log line with ${id}`);
    }
  });
});

describe("aborted requests", () => {
  test("finishes the turn of an aborted stream, and keeps its answer in the session", async () => {
    const controller = new AbortController();
    const stream = await openai.chat.completions.create(
      { model, messages: [user("wait: 100\nwords: 30")], stream: true },
      { signal: controller.signal },
    );
    let id = "";
    for await (const chunk of stream) {
      ({ id } = chunk);
      if (chunk.choices[0]?.delta.content?.includes("word1") === true) controller.abort();
    }
    const turn = await client.settled(id.replace("chatcmpl-", ""), 60_000);
    assert.equal(turn.exitReason, "end_turn");
    assert.match(turn.text ?? "", /word30$/);
    assert.equal((await saidIn(client, await sessionOf(client, id))).length, 1);
  });

  test("answers a repeated request from the turn of the aborted one when the key is the same", async () => {
    const text = "pause: 1500\nsay: kept";
    const request = { model, messages: [user(text)], user: "repeat" };
    const headers = { "Idempotency-Key": "order-7" };
    const impatient = openai.chat.completions.create(request, { headers, timeout: 700 });
    await assert.rejects(impatient, OpenAI.APIConnectionTimeoutError);
    const answer = await openai.chat.completions.create(request, { headers });
    assert.equal(answer.choices[0]?.message.content, "kept");
    assert.equal(await sentTimes(text), 1);
  });
});

describe("stopped turns", () => {
  const stop = () => openai.chat.completions.create({ model, messages: [user("/stop")], user: "halt" });
  const isStopped = (error: unknown) => error instanceof APIError && error.code === "turn_stopped";

  test("ends a stream with an error when the turn is stopped, instead of a finish reason", async () => {
    const messages = [user("wait: 100\nwords: 3000")];
    const finishes: (string | null)[] = [];
    const read = async () => {
      const stream = await openai.chat.completions.create({ model, messages, user: "halt", stream: true });
      for await (const { choices } of stream) {
        if (choices[0]?.delta.content?.includes("word1") === true) await stop();
        if (choices[0]?.finish_reason != null) finishes.push(choices[0].finish_reason);
      }
    };
    await assert.rejects(read(), isStopped);
    assert.deepEqual(finishes, []);
  });

  test("refuses a complete answer of a stopped turn, and the client does not repeat it", async () => {
    const text = "wait: 100\nwords: 3001";
    const completion = openai.chat.completions.create(
      { model, messages: [user(text)], user: "halt" },
      { maxRetries: 3 },
    );
    const [{ error }] = await Promise.all([
      completion.then(
        () => ({ error: null }),
        (failure: unknown) => ({ error: failure }),
      ),
      pollUntil(async () => (await sentTimes(text)) === 1, "the message in the session").then(stop),
    ]);
    assert.ok(isStopped(error) && error instanceof OpenAI.ConflictError);
    assert.equal(await sentTimes(text), 1);
  });
});

describe("automatic retries", () => {
  for (const [name, ask] of [
    [
      "chat completion",
      async (text: string, options: OpenAI.RequestOptions) => {
        const answer = await openai.chat.completions.create({ model, messages: [user(text)], user: "retry" }, options);
        return answer.choices[0]?.message.content;
      },
    ],
    [
      "response",
      async (text: string, options: OpenAI.RequestOptions) =>
        (await openai.responses.create({ model, input: text, user: "retry" }, options)).output_text,
    ],
  ] as const) {
    test(`starts one turn when the client times out and retries a ${name}`, async () => {
      const text = `pause: 4000\nsay: one ${name}`;
      const answer = await ask(text, { timeout: 1_500, maxRetries: 10 });
      assert.equal(answer, `one ${name}`);
      assert.equal(await sentTimes(text), 1);
    });
  }

  test("starts a turn for each of several equal requests", async () => {
    const text = "say: the same";
    const requests = [1, 2, 3].map(() =>
      openai.chat.completions.create({ model, messages: [user(text)], user: "equal" }),
    );
    const answers = await Promise.all(requests);
    assert.equal(new Set(answers.map(({ id }) => id)).size, 3);
    assert.equal(await sentTimes(text), 3);
  });
});
