// Several model servers in one deployment, `[llm.<name>]`: two servers of different formats in one chain of fallbacks.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request } from "node:http";
import { writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { LLMock } from "@copilotkit/aimock";
import { parseSettings, readBaseConfig } from "@parley/chassis";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { readConfig } from "../src/config.ts";
import { callModel } from "../src/model/call.ts";
import { ModelError, type Failover, type ModelProvider, type ModelRequest } from "../src/model/provider.ts";
import { ModelRegistry } from "../src/model/registry.ts";

const question: ModelRequest = {
  system: "s",
  tools: [],
  messages: [{ role: "user", parts: [{ type: "text", text: "hi" }] }],
  maxOutputTokens: 100,
};
const times = { tries: 2, baseMs: 1, capMs: 60_000, firstByteMs: 10_000, idleMs: 10_000 };

function configure(toml: string, env: Record<string, string> = {}) {
  const base = readBaseConfig({}, "agent-core");
  return readConfig(env, { ...base, settings: parseSettings(toml, "parley.toml") });
}

/** A proxy that records the keys of requests; the records of the mock do not contain them. */
function keyRecorder(mock: LLMock) {
  const keys = new Set<string | undefined>();
  const server = createServer((asked, response) => {
    keys.add((asked.headers.authorization ?? asked.headers["x-api-key"]?.toString())?.replace("Bearer ", ""));
    const options = { method: asked.method, headers: asked.headers };
    const forwarded = request(`${mock.url}${asked.url ?? "/"}`, options, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    asked.pipe(forwarded);
  });
  return {
    keys,
    start: () => once(server.listen(0, "127.0.0.1"), "listening"),
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
    get url() {
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    },
  };
}

describe("named model servers", () => {
  const near = new LLMock({ port: 0 });
  const far = new LLMock({ port: 0 });
  const nearFront = keyRecorder(near);
  const farFront = keyRecorder(far);
  before(async () => {
    await Promise.all([near.start(), far.start()]);
    await Promise.all([nearFront.start(), farFront.start()]);
  });
  after(async () => {
    nearFront.stop();
    farFront.stop();
    await Promise.all([near.stop(), far.stop()]);
  });
  beforeEach(() => {
    near.reset();
    far.reset();
  });

  const settings = () => `
[agent]
model = "near"
[models]
fallback = ["far:claude-far"]
fallback_after = 1
[llm.near]
base_url = "${nearFront.url}/v1"
key_env = "PARLEY_AGENT_NEAR_KEY"
model = "llama3:8b"
[llm.far]
api = "anthropic"
base_url = "${farFront.url}"
key_env = "PARLEY_AGENT_FAR_KEY"
`;
  const keys = { PARLEY_AGENT_NEAR_KEY: "near-key", PARLEY_AGENT_FAR_KEY: "far-key" };
  const registryOf = () => {
    const { access, model } = configure(settings(), keys);
    const { models } = parseSettings(settings(), "parley.toml");
    return new ModelRegistry({ access, main: model, settings: models, thinking: "off", warn: () => undefined });
  };
  const call = (provider: ModelProvider) =>
    callModel(
      provider,
      question,
      times,
      { delta: () => undefined, retry: () => undefined },
      new AbortController().signal,
    );

  // design: 001.40, 000.33
  test("answer with their own key, and stand in for each other in one chain", async () => {
    near.onMessage("hi", { content: "from near" });
    far.onMessage("hi", { content: "from far" });
    const registry = registryOf();
    const moves: Failover[] = [];
    const turn = () => registry.turnModel({ onFailover: (move) => moves.push(move) });

    const first = await call(turn());
    assert.deepEqual(first.parts, [{ type: "text", text: "from near" }]);
    assert.deepEqual([...nearFront.keys], ["near-key"]);
    assert.equal((near.getLastRequest()?.body as { model?: string } | undefined)?.model, "llama3:8b");

    near.reset();
    near.onMessage("hi", { error: { message: "busy", type: "server_error" }, status: 503 });
    const second = await call(turn());
    assert.deepEqual(second.parts, [{ type: "text", text: "from far" }]);
    assert.deepEqual([...farFront.keys], ["far-key"]);
    assert.deepEqual(
      moves.map(({ from, to }) => [from, to]),
      [["near:llama3:8b", "far:claude-far"]],
    );
  });

  test("name their own variable and setting in errors", async () => {
    near.onMessage("hi", { error: { message: "no", type: "invalid_api_key" }, status: 401 });
    far.onMessage("hi", { error: { message: "no", type: "authentication_error" }, status: 401 });
    const registry = registryOf();
    for (const [name, variable] of [
      ["near", "PARLEY_AGENT_NEAR_KEY"],
      ["far:claude-far", "PARLEY_AGENT_FAR_KEY"],
    ] as const) {
      await assert.rejects(
        call(registry.turnModel({ model: name, pinned: true, onFailover: () => undefined })),
        (error) => {
          assert.ok(error instanceof ModelError, String(error));
          return error.failure === "auth" && error.keyVariable === variable;
        },
      );
    }
    const provider = registry.modelFor("near");
    await provider.prepare?.();
    assert.match(provider.note?.() ?? "", /does not list llama3:8b|PARLEY_AGENT_NEAR_KEY/);
  });

  test("are refused with what to change when a name, key or model is missing", () => {
    const refuses = (toml: string, message: RegExp, env: Record<string, string> = {}) =>
      assert.throws(() => configure(toml, env), { message });
    refuses(settings(), /llm\.near\.key_env: PARLEY_AGENT_NEAR_KEY is not set/);
    refuses('[llm.openai]\nbase_url = "http://127.0.0.1:1/v1"', /built-in provider; choose another name/);
    refuses('[llm.near]\nbase_url = "127.0.0.1:1/v1"', /must be an address such as http/);
    refuses('[llm.near]\nbase_url = "http://me:secret@h/v1"', /must not contain a user name/);
    refuses('[llm.near]\nbase_url = "http://h/v1"\nkey_env = "PATH"', /must be the NAME of an environment variable/);
    const nameless = '[agent]\nmodel = "near"\n[llm.near]\nbase_url = "http://h/v1"';
    refuses(nameless, /\[llm\.near\] has no `model`; use near:<model>/);
    assert.equal(configure(nameless.replace('"near"', '"near:m"')).model, "near:m");
  });

  test("keep their keys out of the log", () => {
    assert.deepEqual(configure(settings(), keys).secrets.values, ["near-key", "far-key"]);
  });

  test("are called with the new key after its file has changed", async () => {
    await using cleanup = new Cleanup();
    const folder = await temporaryFolder(cleanup);
    const [nearFile, farFile] = [join(folder, "near"), join(folder, "far")];
    await Promise.all([writeFile(nearFile, "near-1\n"), writeFile(farFile, "far-1\n")]);
    const files = { PARLEY_AGENT_NEAR_KEY_FILE: nearFile, PARLEY_AGENT_FAR_KEY_FILE: farFile };
    const { access, model, secrets } = configure(settings(), files);
    const { models } = parseSettings(settings(), "parley.toml");
    const registry = new ModelRegistry({
      access,
      main: model,
      settings: models,
      thinking: "off",
      warn: () => undefined,
    });
    const events: string[] = [];
    secrets.onChange = (variable) => events.push(`changed ${variable}`);
    secrets.onFailure = (variable) => events.push(`unreadable ${variable}`);
    const keysOfCalls = async () => {
      near.onMessage("hi", { content: "from near" });
      far.onMessage("hi", { content: "from far" });
      nearFront.keys.clear();
      farFront.keys.clear();
      for (const name of ["near", "far:claude-far"])
        await call(registry.turnModel({ model: name, pinned: true, onFailover: () => undefined }));
      return [...nearFront.keys, ...farFront.keys];
    };
    assert.deepEqual(await keysOfCalls(), ["near-1", "far-1"]);
    await Promise.all([writeFile(nearFile, "near-2\n"), writeFile(farFile, "far-2\n")]);
    assert.deepEqual(await keysOfCalls(), ["near-2", "far-2"]);
    assert.deepEqual(events, ["changed PARLEY_AGENT_NEAR_KEY", "changed PARLEY_AGENT_FAR_KEY"]);
    // A file that is being replaced: the last key stays in use.
    await writeFile(nearFile, "");
    assert.deepEqual(await keysOfCalls(), ["near-2", "far-2"]);
    assert.deepEqual(events.slice(2), ["unreadable PARLEY_AGENT_NEAR_KEY"]);
    assert.deepEqual(secrets.values, ["near-1", "far-1", "near-2", "far-2"], "the log removes all of them");
  });

  test("are refused when the file of a key cannot be used", async () => {
    await using cleanup = new Cleanup();
    const file = join(await temporaryFolder(cleanup), "key");
    await writeFile(file, "");
    const env = { PARLEY_AGENT_NEAR_KEY_FILE: file, PARLEY_AGENT_FAR_KEY: "far-key" };
    assert.throws(() => configure(settings(), env), /PARLEY_AGENT_NEAR_KEY_FILE: .*key is empty/);
  });
});
