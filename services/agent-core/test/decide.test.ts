import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { noUsage, type Part } from "@parley/contracts";
import fc from "fast-check";
import type { RetryTimes } from "../src/config.ts";
import { mayReplace } from "../src/leadership/standby.ts";
import { backoffMs } from "../src/model/call.ts";
import { ModelError, type ModelFailure, type ModelReply, type StopReason } from "../src/model/provider.ts";
import { decide, failureNotice, limitReached } from "../src/turn/decide.ts";
import { groups, type PlannedCall } from "../src/turn/tool-calls.ts";

const said: Part = { type: "text", text: "text" };
const call: Part = { type: "tool_call", id: "1", name: "read", input: "{}" };
const reply = (stopReason: StopReason, parts: Part[]): ModelReply => ({
  parts,
  stopReason,
  rawStopReason: stopReason,
  usage: noUsage,
  model: "m",
});

const stopReasons: StopReason[] = [
  "end_turn",
  "tool_use",
  "max_tokens",
  "stop_sequence",
  "pause_turn",
  "refusal",
  "model_context_window_exceeded",
  "other",
];

describe("stop reasons", () => {
  test("tool calls are run for tool_use and for nothing else", () => {
    for (const reason of stopReasons) {
      const decision = decide(reply(reason, [said, call]));
      assert.equal(decision.next === "tools", reason === "tool_use", reason);
      if (decision.next !== "tools")
        assert.ok(!decision.parts.includes(call), `${reason} keeps a call that is never answered`);
    }
  });

  test("no way to end a turn is silent", () => {
    for (const reason of stopReasons) {
      for (const parts of [[], [said], [{ type: "reasoning", text: "hm" } satisfies Part]]) {
        const decision = decide(reply(reason, parts));
        if (decision.next === "finish") assert.notEqual(decision.finish.text.trim(), "", reason);
      }
    }
  });

  test("tool_use without a call is the end of the turn, an unknown reason too", () => {
    assert.equal(decide(reply("tool_use", [said])).next, "finish");
    assert.equal(decide(reply("other", [said])).next, "finish");
  });

  test("a cut answer says that it was cut", () => {
    const decision = decide(reply("max_tokens", [said, call]));
    assert.ok(decision.next === "finish" && decision.finish.exitReason === "max_tokens");
    assert.match(decision.finish.text, /^text\n\n\[.*length limit/);
  });
});

test("every failure of a model tells the user what is wrong", () => {
  const failures: ModelFailure[] = [
    "rate_limit",
    "overloaded",
    "server",
    "connection",
    "stalled",
    "auth",
    "spend_limit",
    "context_overflow",
    "invalid",
  ];
  for (const failure of failures)
    assert.match(failureNotice(new ModelError(failure, "why")).text, /cannot answer|could not answer/);
});

test("a limit of 0 is no limit, a reached one ends the turn with a sentence", () => {
  const progress = { modelSteps: 1_000, toolCalls: 1_000, elapsedMs: 1e9 };
  assert.equal(limitReached({ maxIterations: 0, maxToolCalls: 0, maxTurnMs: 0 }, progress), undefined);
  for (const limits of [
    { maxIterations: 10, maxToolCalls: 0, maxTurnMs: 0 },
    { maxIterations: 0, maxToolCalls: 10, maxTurnMs: 0 },
    { maxIterations: 0, maxToolCalls: 0, maxTurnMs: 10 },
  ]) {
    assert.match(limitReached(limits, progress)?.text ?? "", /I stopped here/);
  }
});

test("waiting doubles with at most 20 % jitter, never under what the provider asks, never over the cap otherwise", () => {
  const times: RetryTimes = { tries: 8, baseMs: 2_000, capMs: 60_000, firstByteMs: 1, idleMs: 1 };
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 8 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.option(fc.nat(100_000)),
      (attempt, random, asked) => {
        const wait = backoffMs(attempt, times, asked ?? undefined, random);
        const exact = 2_000 * 2 ** (attempt - 1);
        assert.ok(wait >= Math.min(exact, 60_000) && wait >= (asked ?? 0));
        assert.ok(wait <= Math.max(Math.min(exact * 1.2, 60_000), asked ?? 0));
      },
    ),
  );
});

describe("taking over", () => {
  const times = { ttlMs: 6_000, renewMs: 2_000, giveUpMs: 4_000, pingMs: 250, pollMs: 1_000, silentMs: 1_500 };
  const self = { replica: "a", incarnation: "2" };

  test("a leader that answers is left alone, a silent one is replaced after 1.5 s", () => {
    const seen = { holder: "b/1", now: 10_000, released: undefined };
    assert.equal(mayReplace({ ...seen, lastAnswerAt: 8_501 }, self, times), false);
    assert.equal(mayReplace({ ...seen, lastAnswerAt: 8_500 }, self, times), true);
  });

  test("a released leadership and an earlier life of the same replica are taken at once", () => {
    const seen = { now: 10_000, lastAnswerAt: 10_000 };
    assert.equal(mayReplace({ ...seen, holder: "b/1", released: "b/1" }, self, times), true);
    assert.equal(mayReplace({ ...seen, holder: "a/1", released: undefined }, self, times), true);
    assert.equal(mayReplace({ ...seen, holder: "a/2", released: undefined }, self, times), false);
    assert.equal(mayReplace({ ...seen, holder: "ab/1", released: "b/1" }, self, times), false);
  });
});

test("neighbouring reads run together, everything else alone and in its place", () => {
  const planned = (name: string, readOnly: boolean): PlannedCall => ({
    readOnly,
    timeoutMs: 1,
    step: {
      turnId: "t",
      n: 1,
      callId: name,
      tool: name,
      class: "pure",
      state: "intended",
      input: "{}",
      result: null,
      runner: null,
      startedAt: null,
    },
  });
  const grouped = groups([
    planned("r1", true),
    planned("r2", true),
    planned("w1", false),
    planned("w2", false),
    planned("r3", true),
  ]);
  assert.deepEqual(
    grouped.map((group) => group.map((each) => each.step.tool)),
    [["r1", "r2"], ["w1"], ["w2"], ["r3"]],
  );
});
