import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { createOpenAi } from "../src/model/openai.ts";
import type { ModelProvider, ModelSize } from "../src/model/provider.ts";
import { Refreshing } from "../src/model/refreshing.ts";
import { createRehearsal } from "../src/model/rehearsal.ts";
import { ContextWindows } from "../src/model/window.ts";

const times = { freshMs: 300_000, failedMs: 30_000, firstWaitMs: 10_000, loadMs: 10_000 };

class Clock {
  ms = 1_000;
  readonly now = () => this.ms;
}

describe("a value that is asked for again", () => {
  test("is kept for as long as it is fresh, and old until the new one is there", async () => {
    const clock = new Clock();
    let loads = 0;
    const gate = Promise.withResolvers<void>();
    const value = new Refreshing(
      async () => {
        loads += 1;
        if (loads === 2) await gate.promise;
        return loads;
      },
      times,
      clock.now,
    );
    assert.equal(await value.get(), 1);
    clock.ms += 299_999;
    assert.equal(await value.get(), 1);
    assert.equal(loads, 1);
    clock.ms += 1;
    assert.equal(await value.get(), 1, "nobody waits for the new one");
    assert.equal(loads, 2);
    gate.resolve();
    await settled();
    assert.equal(await value.get(), 2);
  });

  // design: 004.13
  test("is kept when asking fails, and asked for again after a while", async () => {
    const clock = new Clock();
    let loads = 0;
    const value = new Refreshing(
      async () => {
        loads += 1;
        if (loads === 2) throw new Error("away");
        return loads;
      },
      times,
      clock.now,
    );
    await value.get();
    value.invalidate();
    assert.equal(await value.get(), 1);
    await settled();
    assert.equal(await value.get(), 1);
    assert.equal(loads, 2);
    clock.ms += 30_000;
    await value.get();
    await settled();
    assert.equal(await value.get(), 3);
  });

  test("that never comes makes nobody wait longer than agreed", async () => {
    const value = new Refreshing(() => new Promise<number>(() => undefined), { ...times, firstWaitMs: 1 });
    assert.equal(await value.get(), undefined);
  });

  test("is asked for once, however many want it", async () => {
    let loads = 0;
    const value = new Refreshing(async () => (loads += 1), times);
    assert.deepEqual(await Promise.all([value.get(), value.get(), value.get()]), [1, 1, 1]);
  });
});

/** Lets what has been resolved be seen. */
async function settled(): Promise<void> {
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
}

describe("a context window", () => {
  const provider = (
    model: string,
    size: () => Promise<ModelSize>,
    own: Partial<ModelProvider> = {},
  ): ModelProvider => ({
    ...createRehearsal(model),
    priceList: "official",
    size,
    ...own,
  });
  const says = (contextTokens: number | null) => async () => ({ contextTokens, maxOutputTokens: null });
  const windowsOf = (known: Record<string, { context_window?: number }> = {}) => {
    const warnings: string[] = [];
    const windows = new ContextWindows({ known, warn: (message) => warnings.push(message), times });
    return { windows, warnings };
  };

  // design: 004.13, switch.20
  test("is what the settings say, then the provider, then the table, then a guess that is told once", async () => {
    const { windows, warnings } = windowsOf({ mine: { context_window: 9_000 } });
    assert.deepEqual(await windows.of(provider("mine", says(1))), { tokens: 9_000, source: "settings" });
    assert.deepEqual(await windows.of(provider("theirs", says(70_000))), { tokens: 70_000, source: "provider" });
    assert.deepEqual(await windows.of(provider("claude-haiku-4-5", says(null))), { tokens: 200_000, source: "table" });
    assert.deepEqual(await windows.of(provider("claude-sonnet-5-5", says(null))), {
      tokens: 1_000_000,
      source: "table",
    });
    assert.deepEqual(warnings, []);
    const unknown = provider("someone-s", says(null));
    for (let times = 0; times < 2; times++) {
      assert.deepEqual(await windows.of(unknown), { tokens: 32_000, source: "default" });
    }
    assert.equal(warnings.length, 1);
    assert.match(warnings[0] ?? "", /someone-s.*context_window/);
  });

  test("is not that of a famous namesake where the server is one's own", async () => {
    const { windows } = windowsOf();
    const own = provider("gpt-4.1", says(null), { priceList: "unknown" });
    assert.equal((await windows.of(own)).source, "default");
  });

  test("is asked for again after an overflow", async () => {
    const { windows } = windowsOf();
    let tokens = 32_768;
    const shrinking = provider("m", async () => ({ contextTokens: tokens, maxOutputTokens: null }));
    assert.equal((await windows.of(shrinking)).tokens, 32_768);
    tokens = 8_192;
    windows.invalidate(shrinking);
    await windows.of(shrinking);
    await settled();
    assert.equal((await windows.of(shrinking)).tokens, 8_192);
  });

  test("is the table's while the provider is away", async () => {
    const { windows } = windowsOf();
    const away = provider("claude-x", () => Promise.reject(new Error("away")));
    assert.deepEqual(await windows.of(away), { tokens: 1_000_000, source: "table" });
  });
});

describe("the window of a server of one's own", () => {
  const answers = new Map<string, unknown>();
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? "";
    asked.push(path);
    request.resume();
    const answer = answers.get(path);
    response
      .writeHead(answer === undefined ? 404 : 200, { "content-type": "application/json" })
      .end(JSON.stringify(answer ?? { error: "not found" }));
  });
  let baseUrl = "";
  before(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  const sizeOf = async (known: Record<string, unknown>, model = "m") => {
    answers.clear();
    asked.length = 0;
    for (const [path, answer] of Object.entries(known)) answers.set(path, answer);
    return createOpenAi({ baseUrl, model }).size(AbortSignal.timeout(10_000));
  };
  const list = (...models: object[]) => ({ "/v1/models": { data: models } });
  const contextOf = async (known: Record<string, unknown>, model = "m") => (await sizeOf(known, model)).contextTokens;

  test("stands in the list of models at vLLM, LM Studio, gateways and OpenRouter", async () => {
    assert.equal(await contextOf(list({ id: "other", max_model_len: 1 }, { id: "m", max_model_len: 40_960 })), 40_960);
    assert.equal(await contextOf(list({ id: "m", max_input_tokens: 128_000 })), 128_000);
    assert.equal(await contextOf(list({ id: "m", context_length: 65_536 })), 65_536);
    assert.equal(await contextOf(list({ id: "m", loaded_context_length: 4_096, max_context_length: 32_768 })), 4_096);
    assert.deepEqual(asked, ["/v1/models"]);
  });

  test("stands in /props at llama.cpp, where the list says only what the model was trained for", async () => {
    const trained = list({ id: "file.gguf", meta: { n_ctx_train: 131_072 } });
    const props = { "/props": { default_generation_settings: { n_ctx: 8_192 } } };
    assert.equal(await contextOf({ ...trained, ...props }, "anything"), 8_192);
    assert.equal(await contextOf(trained, "anything"), 131_072);
  });

  test("stands in /api/show at Ollama: what the model file sets, else what the model has", async () => {
    const shown = { model_info: { "general.architecture": "llama", "llama.context_length": 131_072 } };
    const listed = list({ id: "m:latest" }, { id: "n:latest" });
    assert.equal(await contextOf({ ...listed, "/api/show": shown }), 131_072);
    const parameters = 'stop "<end>"\nnum_ctx                        16384';
    assert.equal(await contextOf({ ...listed, "/api/show": { ...shown, parameters } }), 16_384);
  });

  test("is unknown where the server says nothing or nonsense", async () => {
    assert.deepEqual(await sizeOf({}), { contextTokens: null, maxOutputTokens: null });
    assert.equal(await contextOf(list({ id: "m", max_model_len: "large" })), null);
  });

  test("is not looked for at OpenAI, which does not tell", async () => {
    const openai = createOpenAi({ baseUrl: "https://api.openai.com/v1", model: "m", apiKey: "sk" });
    assert.deepEqual(await openai.size(AbortSignal.timeout(1)), { contextTokens: null, maxOutputTokens: null });
  });
});
