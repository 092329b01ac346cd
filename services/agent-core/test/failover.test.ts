import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ParleySettingsSchema } from "@parley/contracts";
import { CircuitBreaker, circuitBreakerTimes } from "../src/model/circuit-breaker.ts";
import { callModel } from "../src/model/call.ts";
import { TurnModel, type Candidate } from "../src/model/failover.ts";
import {
  ModelError,
  type Failover,
  type ModelFailure,
  type ModelProvider,
  type ModelRequest,
} from "../src/model/provider.ts";
import { ModelRegistry, ModelUnavailable, type RegistryOptions } from "../src/model/registry.ts";
import { createRehearsal } from "../src/model/rehearsal/rehearsal.ts";

const never = new AbortController().signal;
const times = { tries: 8, baseMs: 1, capMs: 60_000, firstByteMs: 10_000, idleMs: 10_000 };
const request: ModelRequest = {
  system: "s",
  tools: [],
  messages: [{ role: "user", parts: [{ type: "text", text: "say: here" }] }],
  maxOutputTokens: 100,
};

class Clock {
  ms = 1_000;
  readonly now = () => this.ms;
}

/** The rehearsal model with a queue of failures. */
function model(name: string, clock = new Clock()): Candidate & { failures: (ModelError | Error)[]; asked: number } {
  const real = createRehearsal(name);
  const failures: (ModelError | Error)[] = [];
  const provider: ModelProvider = {
    ...real,
    stream(...given) {
      candidate.asked += 1;
      const failure = failures.shift();
      return failure === undefined ? real.stream(...given) : Promise.reject(failure);
    },
  };
  const candidate = {
    fullName: name,
    provider,
    breaker: new CircuitBreaker(circuitBreakerTimes, clock.now),
    failures,
    asked: 0,
  };
  return candidate;
}

function chainOf(first: Candidate, ...rest: Candidate[]) {
  const moves: Failover[] = [];
  return { turn: new TurnModel(first, rest, { fallbackAfter: 3, onFailover: (move) => moves.push(move) }), moves };
}
const call = (provider: ModelProvider, asked = request, signal = never) =>
  callModel(provider, asked, times, { delta: () => undefined, retry: () => undefined }, signal);
const failing = (failure: ModelFailure, retryAfterMs?: number) => new ModelError(failure, "no", { retryAfterMs });
const many = (count: number, failure: ModelFailure) => Array.from({ length: count }, () => failing(failure));

describe("a circuit breaker", () => {
  const broken = (clock: Clock, failures = 5) => {
    const breaker = new CircuitBreaker(circuitBreakerTimes, clock.now);
    for (let failure = 0; failure < failures; failure++) breaker.failed();
    return breaker;
  };

  test("opens after five failures within a minute, not after four", () => {
    assert.equal(broken(new Clock(), 4).allows, true);
    assert.equal(broken(new Clock(), 5).allows, false);
  });

  test("forgets failures older than a minute, and all of them after a success", () => {
    const clock = new Clock();
    const breaker = broken(clock, 4);
    clock.ms += 60_000;
    breaker.failed();
    assert.equal(breaker.allows, true);
    const other = broken(clock, 4);
    other.succeeded();
    other.failed();
    assert.equal(other.allows, true);
  });

  test("lets one call probe after half a minute and follows its outcome", () => {
    for (const good of [true, false]) {
      const clock = new Clock();
      const breaker = broken(clock);
      clock.ms += 29_999;
      assert.equal(breaker.allows, false);
      clock.ms += 1;
      assert.equal(breaker.allows, true);
      breaker.begin();
      assert.equal(breaker.allows, false, "only one");
      if (good) breaker.succeeded();
      else breaker.failed();
      assert.equal(breaker.allows, good);
    }
  });

  test("lets the next call probe when the previous probe was stopped", () => {
    const clock = new Clock();
    const breaker = broken(clock);
    clock.ms += 30_000;
    breaker.begin();
    breaker.undecided();
    assert.equal(breaker.allows, true);
  });
});

describe("the model of a turn", () => {
  for (const failure of ["overloaded", "server", "connection", "stalled"] as const) {
    // design: 003.11, 004.39c
    test(`switches to the next model after three attempts with ${failure} and stays there`, async () => {
      const [first, second] = [model("a"), model("b")];
      first.failures.push(...many(3, failure));
      const { turn, moves } = chainOf(first, second);
      assert.equal((await call(turn)).model, "b");
      assert.equal((await call(turn)).model, "b");
      assert.deepEqual([first.asked, second.asked], [3, 2]);
      assert.deepEqual(moves, [{ from: "a", to: "b", reason: `${failure}: no` }]);
      assert.deepEqual([turn.model, turn.fullName], ["b", "b"]);
    });
  }

  test("uses the first model again in the next turn", async () => {
    const [first, second] = [model("a"), model("b")];
    first.failures.push(...many(3, "server"));
    await call(chainOf(first, second).turn);
    assert.equal((await call(chainOf(first, second).turn)).model, "a");
  });

  test("switches immediately when the required delay exceeds the cap and skips the model that long", async () => {
    const clock = new Clock();
    const [first, second] = [model("a", clock), model("b", clock)];
    first.failures.push(failing("rate_limit", 90_000));
    assert.equal((await call(chainOf(first, second).turn)).model, "b");
    clock.ms += 89_999;
    assert.equal((await call(chainOf(first, second).turn)).model, "b");
    clock.ms += 1;
    assert.equal((await call(chainOf(first, second).turn)).model, "a");
    assert.equal(first.asked, 2);
  });

  test("waits when a rate limit ends soon", async () => {
    const [first, second] = [model("a"), model("b")];
    first.failures.push(
      failing("rate_limit", 5),
      failing("rate_limit", 5),
      failing("rate_limit", 5),
      failing("rate_limit"),
    );
    const { turn, moves } = chainOf(first, second);
    assert.equal((await call(turn)).model, "a");
    assert.deepEqual(moves, []);
  });

  // design: 003.11b
  test("switches immediately when the account's limit is reached or the model is unknown, and avoids it", async () => {
    for (const failure of ["spend_limit", "unknown_model"] as const) {
      const [first, second] = [model("a"), model("b")];
      first.failures.push(failing(failure));
      // Preset `repl` waits longer between tries than a model with a lasting failure is avoided.
      const patient = { ...times, capMs: 320_000 };
      const observer = { delta: () => undefined, retry: () => undefined };
      const reply = await callModel(chainOf(first, second).turn, request, patient, observer, never);
      assert.deepEqual([reply.model, first.asked, first.breaker.allows], ["b", 1, false], failure);
    }
  });

  for (const failure of ["auth", "invalid", "context_overflow"] as const) {
    test(`does not switch for ${failure}, which needs a person`, async () => {
      const [first, second] = [model("a"), model("b")];
      first.failures.push(failing(failure));
      await assert.rejects(call(chainOf(first, second).turn), { failure });
      assert.equal(second.asked, 0);
    });
  }

  test("does not switch for a refusal, which is an answer", async () => {
    const [first, second] = [model("a"), model("b")];
    const refused = {
      ...request,
      messages: [{ role: "user" as const, parts: [{ type: "text" as const, text: "stop: refusal" }] }],
    };
    const reply = await call(chainOf(first, second).turn, refused);
    assert.deepEqual([reply.model, reply.stopReason], ["a", "refusal"]);
  });

  test("starts with the second model while the first one's breaker is open, and reports it", async () => {
    const [first, second] = [model("a"), model("b")];
    for (let failure = 0; failure < 5; failure++) first.breaker.failed();
    const { turn, moves } = chainOf(first, second);
    assert.equal((await call(turn)).model, "b");
    assert.deepEqual(
      moves.map(({ from, to }) => [from, to]),
      [["a", "b"]],
    );
    assert.equal(first.asked, 0);
  });

  test("uses the first model in spite of an open breaker when there is no other", async () => {
    const first = model("a");
    for (let failure = 0; failure < 5; failure++) first.breaker.failed();
    assert.equal((await call(chainOf(first).turn)).model, "a");
  });

  test("uses all attempts at the end of the chain", async () => {
    const [first, second] = [model("a"), model("b")];
    first.failures.push(...many(3, "overloaded"));
    second.failures.push(...many(7, "overloaded"));
    assert.equal((await call(chainOf(first, second).turn)).model, "b");
    assert.equal(second.asked, 8);
  });

  test("fails with the last model's error when all fail", async () => {
    const [first, second] = [model("a"), model("b")];
    first.failures.push(...many(3, "overloaded"));
    second.failures.push(...many(8, "connection"));
    await assert.rejects(call(chainOf(first, second).turn), { failure: "connection" });
  });

  test("does not open the breaker when the user stops the call", async () => {
    const first = model("a");
    for (let stops = 0; stops < 6; stops++) {
      const stop = new AbortController();
      const slow = {
        ...request,
        messages: [{ role: "user" as const, parts: [{ type: "text" as const, text: "pause: 600000" }] }],
      };
      const running = call(chainOf(first).turn, slow, stop.signal);
      stop.abort(new Error("stopped"));
      await assert.rejects(running, /stopped/);
    }
    assert.equal(first.breaker.allows, true);
  });

  test("counts a stalled stream as a failure", async () => {
    const [first, second] = [model("a"), model("b")];
    const quiet: ModelProvider = {
      ...first.provider,
      stream: (_request, _on, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason as Error));
        }),
    };
    const { turn } = chainOf({ ...first, provider: quiet }, second);
    const observer = { delta: () => undefined, retry: () => undefined };
    const reply = await callModel(turn, request, { ...times, firstByteMs: 5 }, observer, never);
    assert.equal(reply.model, "b");
  });
});

describe("the registry of models", () => {
  const registryOf = (own: Partial<RegistryOptions> = {}, models: object = {}) =>
    new ModelRegistry({
      access: { anthropic: null, openai: null, named: new Map() },
      main: "rehearsal",
      settings: ParleySettingsSchema.parse({ models }).models,
      thinking: "adaptive",
      warn: () => undefined,
      ...own,
    });
  const anthropic = { apiKey: "sk-ant", baseUrl: undefined };
  const openai = { apiKey: undefined, baseUrl: "http://127.0.0.1:1/v1" };

  test("creates each model once, under any of its names", () => {
    const registry = registryOf({ access: { anthropic, openai, named: new Map() }, main: "claude-x" });
    assert.equal(registry.modelFor("anthropic:claude-x"), registry.main);
    assert.equal(registry.modelFor("openai:llama3:8b"), registry.modelFor("openai:llama3:8b"));
    assert.notEqual(registry.modelFor("openai:a"), registry.modelFor("openai:b"));
    assert.equal(registry.modelFor("openai:llama3:8b").model, "llama3:8b");
    assert.equal(registry.fullName("claude-x"), "anthropic:claude-x");
  });

  test("names what is missing for an unavailable model", () => {
    const registry = registryOf();
    const missing = (name: string, message: RegExp) =>
      assert.throws(
        () => registry.modelFor(name),
        (error) => error instanceof ModelUnavailable && message.test(error.message),
      );
    missing("claude-x", /claude-x requires ANTHROPIC_API_KEY, which is not set$/);
    missing("gpt-9", /gpt-9 requires ANTHROPIC_API_KEY.* is openai:gpt-9$/);
    missing("openai:gpt-x", /openai:gpt-x .*OPENAI_API_KEY .*OPENAI_BASE_URL/);
    missing("openai:", /is not a model name/);
    missing(" ", /is not a model name/);
  });

  test("gives a turn its fallbacks unless a person chose the model", async () => {
    const registry = registryOf({}, { fallback: ["rehearsal:spare"], fallback_after: 1 });
    const failing = {
      ...request,
      messages: [{ role: "user" as const, parts: [{ type: "text" as const, text: "fail: overloaded 1\nsay: here" }] }],
    };
    const moves: Failover[] = [];
    const onFailover = (move: Failover) => void moves.push(move);
    assert.equal((await call(registry.turnModel({ onFailover, pinned: true }), failing)).model, "rehearsal");
    assert.deepEqual(moves, []);
    const spare = registry.turnModel({ onFailover, model: "rehearsal:other" });
    await call(spare, failing).catch(() => undefined);
    assert.deepEqual(
      moves.map(({ from, to }) => [from, to]),
      [["rehearsal:other", "rehearsal:spare"]],
    );
    assert.equal(spare.fullName, "rehearsal:spare");
  });

  test("knows the window of each model of a turn, also after a failover", async () => {
    const registry = registryOf(
      {},
      { fallback: ["rehearsal:spare"], fallback_after: 1, known: { "rehearsal:spare": { context_window: 5_000 } } },
    );
    const text = "fail: overloaded 1\nsay: here";
    const failingOnce = { ...request, messages: [{ role: "user" as const, parts: [{ type: "text" as const, text }] }] };
    const turn = registry.turnModel({ onFailover: () => undefined });
    assert.equal((await registry.windowOf(turn)).tokens, 200_000);
    await call(turn, failingOnce).catch(() => undefined);
    assert.equal(turn.current, registry.modelFor("rehearsal:spare"));
    assert.equal((await registry.windowOf(turn)).tokens, 5_000);
  });

  test("knows the price and the window of a model", async () => {
    const registry = registryOf({}, { known: { rehearsal: { context_window: 5_000 } } });
    assert.equal(
      registry.costOf(registry.main, { inputTokens: 9, outputTokens: 9, cacheReadTokens: 0, cacheWriteTokens: 0 }, 0),
      0,
    );
    assert.deepEqual(await registry.windowOf(registry.main), { tokens: 5_000, source: "settings" });
  });
});
