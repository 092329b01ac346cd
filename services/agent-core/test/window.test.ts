import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { createOpenAi } from "../src/model/openai/openai.ts";
import type { ModelProvider, ModelSize } from "../src/model/provider.ts";
import { CachedValue, cachedValueTimes } from "../src/model/cached-value.ts";
import { createRehearsal } from "../src/model/rehearsal/rehearsal.ts";
import { ContextWindows } from "../src/model/window.ts";

const times = { freshMs: 300_000, failedMs: 30_000, firstWaitMs: 10_000, loadMs: 10_000 };

class Clock {
  ms = 1_000;
  readonly now = () => this.ms;
}

describe("a cached value", () => {
  test("is used while fresh, and the old one until the refreshed one is loaded", async () => {
    const clock = new Clock();
    let loads = 0;
    const gate = Promise.withResolvers<void>();
    const value = new CachedValue(
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
    assert.equal(await value.get(), 1, "a reader waits for the refresh");
    assert.equal(loads, 2);
    gate.resolve();
    await settled();
    assert.equal(await value.get(), 2);
  });

  // design: 004.13
  test("is loaded again after five minutes by default", () => {
    assert.equal(cachedValueTimes.freshMs, 5 * 60_000);
  });

  // design: 004.13
  test("is kept when loading fails and loaded again after a while", async () => {
    const clock = new Clock();
    let loads = 0;
    const value = new CachedValue(
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

  test("blocks readers for a bounded time only when it never loads", async () => {
    const value = new CachedValue(() => new Promise<number>(() => undefined), { ...times, firstWaitMs: 1 });
    assert.equal(await value.get(), undefined);
  });

  test("is loaded once for any number of concurrent readers", async () => {
    let loads = 0;
    const value = new CachedValue(async () => (loads += 1), times);
    assert.deepEqual(await Promise.all([value.get(), value.get(), value.get()]), [1, 1, 1]);
  });
});

/** Lets resolved promises settle. */
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
  test("comes from the settings, the provider, the table or a default with one warning", async () => {
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

  test("of a self-hosted server ignores the table entry of the same name", async () => {
    const { windows } = windowsOf();
    const own = provider("gpt-4.1", says(null), { priceList: "unknown" });
    assert.equal((await windows.of(own)).source, "default");
  });

  // design: 004.15
  test("is requested again after an overflow", async () => {
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

  test("comes from the table while the provider is unavailable", async () => {
    const { windows } = windowsOf();
    const away = provider("claude-x", () => Promise.reject(new Error("away")));
    assert.deepEqual(await windows.of(away), { tokens: 1_000_000, source: "table" });
  });
});

describe("the window of a self-hosted server", () => {
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

  // design: 000.33
  test("is in the list of models of vLLM, LM Studio, gateways and OpenRouter", async () => {
    assert.equal(await contextOf(list({ id: "other", max_model_len: 1 }, { id: "m", max_model_len: 40_960 })), 40_960);
    assert.equal(await contextOf(list({ id: "m", max_input_tokens: 128_000 })), 128_000);
    assert.equal(await contextOf(list({ id: "m", context_length: 65_536 })), 65_536);
    assert.equal(await contextOf(list({ id: "m", loaded_context_length: 4_096, max_context_length: 32_768 })), 4_096);
    assert.deepEqual(asked, ["/v1/models"]);
  });

  test("is in /props of llama.cpp, whose list contains only the trained window", async () => {
    const trained = list({ id: "file.gguf", meta: { n_ctx_train: 131_072 } });
    const props = { "/props": { default_generation_settings: { n_ctx: 8_192 } } };
    assert.equal(await contextOf({ ...trained, ...props }, "anything"), 8_192);
    assert.equal(await contextOf(trained, "anything"), 131_072);
  });

  test("is in /api/show of Ollama: the model file's value, else the model's own", async () => {
    const shown = { model_info: { "general.architecture": "llama", "llama.context_length": 131_072 } };
    const listed = list({ id: "m:latest" }, { id: "n:latest" });
    assert.equal(await contextOf({ ...listed, "/api/show": shown }), 131_072);
    const parameters = 'stop "<end>"\nnum_ctx                        16384';
    assert.equal(await contextOf({ ...listed, "/api/show": { ...shown, parameters } }), 16_384);
  });

  test("is unknown when the server reports nothing or invalid values", async () => {
    assert.deepEqual(await sizeOf({}), { contextTokens: null, maxOutputTokens: null });
    assert.equal(await contextOf(list({ id: "m", max_model_len: "large" })), null);
  });

  test("is not requested from OpenAI, which does not report it", async () => {
    const openai = createOpenAi({ baseUrl: "https://api.openai.com/v1", model: "m", apiKey: "sk" });
    assert.deepEqual(await openai.size(AbortSignal.timeout(1)), { contextTokens: null, maxOutputTokens: null });
  });
});
