// The compaction of the five designs, with the settings of their presets.
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadSettings } from "@parley/chassis";
import type { CompactionSettings, Message, presetNames, ViewRecord } from "@parley/contracts";
import { estimateTokens } from "../../src/model/tokens.ts";
import { nextRecord } from "../../src/compaction/next-record.ts";
import { planCompaction } from "../../src/compaction/plan.ts";
import type { PlanInput } from "../../src/compaction/plan-types.ts";
import { viewMessages } from "../../src/compaction/view-messages.ts";
import { buildPrompt } from "../../src/prompt/build-prompt.ts";
import { illegal, Log } from "./histories.ts";

function compactionOf(preset: (typeof presetNames)[number]): CompactionSettings {
  return loadSettings(undefined, { PARLEY_PRESET: preset }).compaction;
}

/** Turns of a request, a call with its result, and an answer. */
function talk(turns: number, chars = 3_000): Log {
  const log = new Log();
  for (let turn = 1; turn <= turns; turn++) {
    log.asks(turn, `request ${turn}: ${"q".repeat(chars / 10)}`);
    log.uses(turn, `result ${turn}: ${"r".repeat(chars)}`);
    log.answers(turn, `answer ${turn}: ${"a".repeat(chars / 10)}`);
  }
  return log;
}

function plan(log: Log, settings: CompactionSettings, given: Partial<PlanInput> = {}) {
  return planCompaction({
    record: null,
    messages: log.messages,
    settings,
    cause: "check",
    usableTokens: 180_000,
    turnId: null,
    ...given,
  });
}

/** The prompt after the plan is applied; each message as role and texts. */
function after(
  log: Log,
  made: ReturnType<typeof plan>,
  summary: string | null,
): { record: ViewRecord; texts: string[] } {
  assert.ok(made !== null, "there is no plan");
  const record = nextRecord(null, made, summary);
  assert.ok(record !== null);
  const prompt = buildPrompt(viewMessages(record, log.messages));
  assert.equal(illegal(prompt), undefined);
  const texts = prompt.map(({ role, parts }) => {
    const said = parts.map((part) => {
      if (part.type === "text") return part.text;
      return part.type === "tool_result" ? part.content : part.type;
    });
    return `${role}: ${said.map((text) => text.slice(0, 60)).join(" | ")}`;
  });
  return { record, texts };
}

// design: 000.26, 000.41, 000.26d
test("000: shows only the summary and the last request after 200,000 counted tokens", () => {
  const settings = compactionOf("singleton");
  const log = talk(20);
  log.asks(21, "and now?");
  const asked = { turnId: "turn-21", usableTokens: 1_000_000, estimate: (m: readonly Message[]) => m.length * 2_000 };
  assert.equal(plan(log, settings, { ...asked, messages: log.messages.slice(-81) }), null);
  const longer = { ...asked, overheadTokens: 40_000 };
  const made = plan(log, settings, longer);
  assert.equal(made?.trigger, "tokens");
  assert.equal(made.form, "same_prefix");
  assert.deepEqual(after(log, made, "so far").texts, [
    "user: [CONTEXT SUMMARY]\nso far\n[END CONTEXT SUMMARY] | and now?",
  ]);
});

test("000: shows the summary, the turn's request and the open round when compacted mid-turn", () => {
  const settings = { ...compactionOf("singleton"), trigger_tokens: 10_000 };
  const log = talk(5);
  log.asks(6, "do the long thing");
  for (let round = 1; round <= 6; round++) log.uses(6, `round ${round} ${"r".repeat(3_000)}`);
  const made = plan(log, settings, { turnId: "turn-6" });
  const { texts, record } = after(log, made, "so far");
  assert.equal(record.lastRequest, "do the long thing");
  assert.deepEqual(
    texts.map((text) => text.slice(0, 25)),
    ["user: [CONTEXT SUMMARY]\ns", "assistant: tool_call", "user: round 6 rrrrrrrrrrr"],
  );
});

// design: 001.25, switch.7
test("001: summarizes all but the last five turns every twenty turns", () => {
  const settings = compactionOf("delegate");
  const log = talk(19, 300);
  assert.equal(plan(log, settings), null);
  log.asks(20, "request 20");
  assert.equal(plan(log, settings, { turnId: "turn-20" }), null, "the running turn does not count");
  log.answers(20, "answer 20");
  const made = plan(log, settings);
  assert.equal(made?.trigger, "turns");
  const { record, texts } = after(log, made, "fifteen turns");
  assert.ok(texts[0]?.includes("fifteen turns") && texts[0].includes("request 16:"), texts[0]);
  assert.equal(record.lastRequest, null, "the last request is kept anyway");
  for (let turn = 21; turn <= 39; turn++) {
    log.asks(turn, "more");
    log.answers(turn, "m".repeat(300));
  }
  assert.equal(plan(log, settings, { record }), null);
  log.asks(40, "more");
  log.answers(40, "m".repeat(300));
  const second = plan(log, settings, { record });
  assert.equal(second?.trigger, "turns");
  assert.equal(log.messages.find((message) => message.seq === second.fromSeq)?.turnId, "turn-36");
});

// design: 002.12, 002.14, switch.8
test("002: keeps the first message, a summary and the last six messages, and splits no pair", () => {
  const settings = compactionOf("repl");
  const log = talk(80);
  const made = plan(log, settings);
  // The sixth message from the end holds results: their call stays as well.
  const { texts } = after(log, made, "the middle");
  assert.deepEqual(
    texts.map((text) => text.slice(0, 24)),
    [
      "user: request 1: qqqqqqq",
      "assistant: tool_call",
      "user: result 79: rrrrrrr",
      "assistant: answer 79: aa",
      "user: request 80: qqqqqq",
      "assistant: tool_call",
      "user: result 80: rrrrrrr",
      "assistant: answer 80: aa",
    ],
  );
  assert.match(texts[0] ?? "", /^user: request 1: q+ \| \[CONTEXT SUMMARY\]\nthe middle\n\[END CONTEXT SUMMARY\]/u);
});

// design: 002.8
test("002: trims by count without orphaned results and keeps the first message", () => {
  const settings = compactionOf("repl");
  const log = talk(13, 60);
  const made = plan(log, settings);
  assert.equal(made?.trigger, "messages");
  assert.equal(made.strategy, "trim");
  const { record, texts } = after(log, made, null);
  assert.ok(viewMessages(record, log.messages).length <= 50);
  assert.match(texts[0] ?? "", /^user: request 1: .*\[Earlier messages/u);
  assert.equal(plan(log, settings, { record }), null);
});

// design: 003.27, switch.7
test("003: keeps the newest 40 % of the window when 80 % are full", () => {
  const settings = compactionOf("goat");
  const log = talk(100);
  const tokens = estimateTokens(log.messages);
  assert.equal(plan(log, settings, { usableTokens: Math.ceil(tokens / 0.79) }), null);
  const usableTokens = Math.floor(tokens / 0.81);
  const made = plan(log, settings, { usableTokens });
  assert.equal(made?.trigger, "share");
  const kept = estimateTokens(log.messages.filter((message) => message.seq >= made.fromSeq));
  assert.ok(kept <= 0.4 * usableTokens && kept > 0.38 * usableTokens, `${kept} of ${usableTokens}`);
  assert.equal(plan(log, settings, { usableTokens, record: after(log, made, "the rest").record }), null);
});

// design: 004.14
test("004: drops the oldest complete rounds without a summary when the window is full", () => {
  const settings = compactionOf("nanobot");
  const log = talk(20);
  log.asks(21, "and now?");
  const usableTokens = estimateTokens(log.messages);
  const made = plan(log, settings, { usableTokens, turnId: "turn-21" });
  assert.equal(made?.form, null);
  const { texts } = after(log, made, null);
  assert.match(texts[0] ?? "", /^user: \[Earlier messages of this/u);
  assert.match(texts.at(-1) ?? "", /^user: and now\?/u);
  assert.ok(texts.length > 20, "what fits stays");
});

// design: 004.15
test("004: halves the prompt in one plan on overflow during a round and splits no pair", () => {
  const settings = compactionOf("nanobot");
  const log = new Log();
  log.asks(1, "look at all of it");
  for (let round = 1; round <= 12; round++) log.uses(1, "r".repeat(3_000));
  const made = plan(log, settings, { cause: "overflow", turnId: "turn-1" });
  assert.ok(made !== null && made.tokensAfter <= made.tokensBefore / 2);
  const { record } = after(log, made, null);
  assert.equal(record.lastRequest, "look at all of it");
});
