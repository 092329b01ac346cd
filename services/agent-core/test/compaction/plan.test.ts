import assert from "node:assert/strict";
import { test } from "node:test";
import { ParleySettingsSchema, type ViewRecord } from "@parley/contracts";
import { estimateTokens } from "../../src/model/tokens.ts";
import { nextRecord } from "../../src/compaction/next-record.ts";
import { planCompaction } from "../../src/compaction/plan.ts";
import type { PlanInput } from "../../src/compaction/plan-types.ts";
import { systemNote, viewMessages } from "../../src/compaction/view-messages.ts";
import { buildPrompt } from "../../src/prompt/build-prompt.ts";
import { finish, Log } from "./histories.ts";

const defaults = ParleySettingsSchema.parse({}).compaction;

function plan(log: Log, given: Partial<PlanInput> = {}) {
  return planCompaction({
    record: null,
    messages: log.messages,
    settings: defaults,
    cause: "check",
    usableTokens: 10_000,
    turnId: null,
    ...given,
  });
}

function chat(turns: number, chars: number): Log {
  const log = new Log();
  for (let turn = 1; turn <= turns; turn++) {
    log.asks(turn, "q".repeat(chars));
    log.answers(turn, "a".repeat(chars));
  }
  return log;
}

function next(record: ViewRecord | null, made: ReturnType<typeof plan>, summary: string | null): ViewRecord {
  assert.ok(made !== null, "there is no plan");
  const result = nextRecord(record, made, summary);
  assert.ok(result !== null);
  return result;
}

// design: 003.13
test("returns no plan below the trigger, for an empty log, or without a strategy", () => {
  assert.equal(plan(chat(2, 30)), null);
  assert.equal(plan(new Log(), { cause: "overflow" }), null);
  assert.equal(plan(chat(40, 3_000), { settings: { ...defaults, strategies: [] } }), null);
});

// design: 003.13
test("leaves old results as they are below the trigger, and clears them at the trigger", () => {
  const log = new Log();
  for (let turn = 1; turn <= 8; turn++) log.uses(turn, `${turn} ${"r".repeat(3_000)}`);
  const settings = { ...defaults, strategies: ["clear_tool_results" as const], keep_last: 4, keep_share: 0 };
  const trigger = Math.floor(estimateTokens(log.messages) / settings.trigger_share);
  assert.equal(plan(log, { settings, usableTokens: trigger + 100 }), null);
  assert.equal(plan(log, { settings, usableTokens: trigger - 100 })?.strategy, "clear_tool_results");
});

// design: 002.13
test("limits a summary to 4,096 tokens, and in a small window to a quarter of the trigger", () => {
  const limit = (usableTokens: number) => plan(chat(40, 3_000), { cause: "demand", usableTokens })?.maxSummaryChars;
  assert.equal(limit(100_000), 4_096 * 3);
  assert.equal(limit(10_000), Math.floor((10_000 * defaults.trigger_share) / 4) * 3);
});

test("compacts once when a person requests it twice in a row", () => {
  const log = chat(20, 600);
  const first = plan(log, { cause: "demand" });
  assert.equal(first?.trigger, "demand");
  const record = next(null, first, "s".repeat(50_000));
  assert.equal(plan(log, { cause: "demand", record }), null);
});

test("leaves a short conversation unchanged when a person requests compaction", () => {
  assert.equal(plan(chat(8, 20), { cause: "demand" }), null);
});

// design: 003.29, 004.39b
test("compacts a half full thread once after the idle time", () => {
  const log = chat(12, 600);
  const idle = { cause: "idle" as const, idleMs: 50 * 60_000 };
  assert.equal(plan(log, { ...idle, idleMs: 49 * 60_000 }), null);
  assert.equal(plan(chat(6, 600), idle), null);
  const made = plan(log, idle);
  assert.equal(made?.trigger, "idle");
  assert.equal(plan(log, { ...idle, record: next(null, made, "short") }), null);
});

// design: interaction.4
test("compacts a conversation without user messages", () => {
  const log = new Log();
  for (let round = 1; round <= 10; round++) log.uses(1, "r".repeat(3_000));
  const made = plan(log);
  const prompt = buildPrompt(viewMessages(next(null, made, "so far"), log.messages));
  assert.equal(prompt[0]?.role, "user");
  assert.ok(prompt.length > 1);
});

test("truncates a result larger than the window and keeps its call", () => {
  const log = new Log();
  log.asks(1, "read it");
  log.uses(1, `begin ${"r".repeat(100_000)} end`);
  for (const cause of ["check", "overflow"] as const) {
    const made = plan(log, { cause, turnId: "turn-1" });
    assert.equal(made?.strategy, "clear_tool_results");
    const shown = viewMessages(next(null, made, null), log.messages).at(-1)?.parts[0];
    assert.ok(shown?.type === "tool_result");
    assert.match(shown.content, /^begin r+\n\[… \d+ characters omitted …\]\nr+ end$/u);
    assert.ok(shown.content.length <= 20_000);
  }
});

// design: 003.28
test("ignores the retention settings above 90 % of the window, not below", () => {
  const log = chat(20, 600);
  const tokens = estimateTokens(log.messages);
  const settings = { ...defaults, keep_last: 1_000 };
  assert.equal(plan(log, { settings, usableTokens: Math.ceil(tokens / 0.9) }), null);
  assert.notEqual(plan(log, { settings, usableTokens: Math.floor(tokens / 0.91) }), null);
});

test("returns no plan for a single request larger than the window", () => {
  const log = new Log();
  log.asks(1, "q".repeat(100_000));
  for (const cause of ["check", "overflow", "demand"] as const)
    assert.equal(plan(log, { cause, turnId: "turn-1" }), null);
});

test("summarizes an old oversized message from a transcript", () => {
  const log = new Log();
  log.asks(1, "q".repeat(100_000));
  log.answers(1, "too long for me");
  log.asks(2, "then in short?");
  const made = plan(log, { turnId: "turn-2" });
  assert.equal(made?.strategy, "summarize");
  assert.equal(made.form, "transcript");
  const shown = viewMessages(next(null, made, "a long text"), log.messages);
  assert.deepEqual(shown.at(-1), log.messages.at(-1));
});

// design: 003.13
test("clears old results but not the newest when that strategy comes before a cut", () => {
  const log = new Log();
  for (let turn = 1; turn <= 8; turn++) {
    log.asks(turn, "again");
    log.uses(turn, `${turn} ${"r".repeat(3_000)}`);
    log.answers(turn, "done");
  }
  const settings = { ...defaults, strategies: ["clear_tool_results" as const], keep_last: 4, keep_share: 0 };
  const record = next(null, plan(log, { settings }), null);
  const results = viewMessages(record, log.messages).flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === "tool_result" ? [part.content.slice(0, 60)] : [])),
  );
  assert.deepEqual(results.slice(0, 7), Array(7).fill("[The result of read, 3002 characters, was removed.]"));
  assert.equal(results[7]?.slice(0, 3), "8 r");
});

// design: interaction.4
test("drops the protection of a beginning that fills half of the window", () => {
  const log = new Log();
  log.asks(1, "q".repeat(18_000));
  log.answers(1, "a".repeat(12_000));
  log.asks(2, "and?");
  const settings = { ...defaults, keep_first: 1, keep_last: 1 };
  const made = plan(log, { settings, turnId: "turn-2" });
  assert.equal(made?.keepFirstTo, 0);
  assert.equal(plan(log, { settings, turnId: "turn-2", usableTokens: 12_100 })?.keepFirstTo, 1, "just under half");
});

// design: 002.16
test("sends a transcript to another summarizing model for any size", () => {
  const log = chat(14, 900);
  assert.equal(plan(log)?.form, "same_prefix");
  assert.equal(plan(log, { settings: { ...defaults, model: "claude-haiku-5-5" } })?.form, "transcript");
});

// design: 003.29, 001.25b
test("keeps messages that arrive during a background summary after it", () => {
  const log = chat(20, 900);
  const made = plan(log);
  assert.ok(made !== null);
  const late = log.add("assistant", 20, [
    { type: "reasoning", text: "hm", signature: "s" },
    { type: "text", text: "ok" },
    finish,
  ]);
  const record = nextRecord(null, made, "so far", { atSeq: late.seq });
  assert.ok(record !== null);
  // Its reasoning was signed for the previous prompt.
  assert.deepEqual(viewMessages(record, log.messages).at(-1)?.parts, [{ type: "text", text: "ok" }, finish]);
  const newer = log.add("assistant", 20, [{ type: "reasoning", text: "hm", signature: "t" }]);
  assert.deepEqual(viewMessages(record, log.messages).at(-1), newer);
});

test("repeats the person's request and not a note of the loop", () => {
  const log = new Log();
  log.asks(1, "the real request");
  for (let round = 1; round <= 10; round++) log.uses(1, "r".repeat(3_000));
  log.add("user", 1, systemNote("go on").parts);
  for (let round = 1; round <= 4; round++) log.uses(1, "r".repeat(3_000));
  assert.equal(plan(log, { turnId: "turn-1" })?.lastRequest, "the real request");
});
