import assert from "node:assert/strict";
import { test } from "node:test";
import { type CompactionSettings, type Message, ViewRecordSchema, type ViewRecord } from "@parley/contracts";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { nextRecord } from "../../src/compaction/next-record.ts";
import { planCompaction } from "../../src/compaction/plan.ts";
import type { Plan, PlanInput } from "../../src/compaction/plan-types.ts";
import { isUserRequest, requestText } from "../../src/compaction/user-requests.ts";
import { fallbackSummary } from "../../src/compaction/summary.ts";
import { estimateTokens } from "../../src/model/tokens.ts";
import { viewMessages } from "../../src/compaction/view-messages.ts";
import { buildPrompt } from "../../src/prompt/build-prompt.ts";
import { histories, illegal } from "./histories.ts";

const strategies = fc.uniqueArray(
  fc.constantFrom("summarize" as const, "clear_tool_results" as const, "trim" as const),
);

const settings: fc.Arbitrary<CompactionSettings> = fc.record({
  strategies,
  trigger_share: fc.constantFrom(0, 0.2, 0.5, 0.75, 1),
  trigger_tokens: fc.constantFrom(0, 0, 500, 4_000),
  trigger_turns: fc.constantFrom(0, 1, 3),
  keep_first: fc.constantFrom(0, 0, 1, 2, 5),
  keep_last: fc.constantFrom(0, 1, 6, 12),
  keep_last_turns: fc.constantFrom(0, 0, 1, 2),
  keep_share: fc.constantFrom(0, 0.2, 0.4, 1),
  append_last_request: fc.boolean(),
  memory_flush: fc.constant(false),
  idle_minutes: fc.constantFrom(0, 50),
  max_messages: fc.constantFrom(0, 0, 1, 10),
});

const cases = fc
  .record({
    messages: histories,
    settings,
    running: fc.boolean(),
    usableTokens: fc.constantFrom(300, 2_000, 8_000, 20_000),
    overheadTokens: fc.constantFrom(0, 400),
    cause: fc.constantFrom<PlanInput["cause"]>("check", "overflow", "demand", "idle"),
    summaryChars: fc.constantFrom(1, 200, 3_000, 40_000),
  })
  .map((each) => ({ ...each, turnId: each.running ? (each.messages.at(-1)?.turnId ?? null) : null }));
type Case = typeof cases extends fc.Arbitrary<infer T> ? T : never;

function planned(
  each: Case,
  record: ViewRecord | null,
  cause: PlanInput["cause"],
  messages = each.messages,
): Plan | null {
  return planCompaction({ ...each, record, messages, cause, idleMs: 60 * 60_000 });
}

function carriedOut(each: Case, record: ViewRecord | null, plan: Plan): ViewRecord {
  const next = nextRecord(record, plan, plan.form === null ? null : "s".repeat(each.summaryChars));
  assert.ok(next !== null);
  return ViewRecordSchema.parse(next);
}

/** Compacts like the loop until no compaction is due. */
function compacted(each: Case): { plan: Plan; before: ViewRecord | null; after: ViewRecord }[] {
  const rounds: { plan: Plan; before: ViewRecord | null; after: ViewRecord }[] = [];
  let record: ViewRecord | null = null;
  let cause = each.cause;
  for (;;) {
    const plan = planned(each, record, cause);
    if (plan === null) return rounds;
    assert.ok(rounds.length < 4, `a fifth round: ${JSON.stringify(plan)}`);
    const after = carriedOut(each, record, plan);
    rounds.push({ plan, before: record, after });
    record = after;
    cause = "check";
  }
}

function promptOf(record: ViewRecord | null, messages: readonly Message[]) {
  return buildPrompt(viewMessages(record, messages));
}

const numRuns = propertyRuns(10_000);

// design: 002.14
test("keeps the prompt valid, and empty only if the log is empty", () => {
  fc.assert(
    fc.property(cases, (each) => {
      const whole = promptOf(null, each.messages);
      for (const { after } of compacted(each)) {
        const prompt = promptOf(after, each.messages);
        assert.equal(illegal(prompt), undefined);
        if (whole.length > 0 || after.fromSeq > 0) assert.ok(prompt.length > 0, "the prompt is empty");
      }
    }),
    { numRuns },
  );
});

test("retains and removes at least one message per cut, and shows no result without its call", () => {
  fc.assert(
    fc.property(cases, (each) => {
      for (const { plan, before, after } of compacted(each)) {
        const shown = viewMessages(after, each.messages).filter((message) => message.seq > 0);
        const shownBefore = viewMessages(before, each.messages).filter((message) => message.seq > 0);
        assert.ok(shown.length > 0);
        if (plan.strategy === "clear_tool_results") assert.equal(shown.length, shownBefore.length);
        else assert.equal(shown.length, shownBefore.length - plan.removed);
        assert.equal(plan.removed > 0, plan.strategy !== "clear_tool_results");
        const callsOf = (messages: readonly Message[]) =>
          new Set(
            messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === "tool_call" ? [part.id] : []))),
          );
        const calls = callsOf(shown);
        const everCalled = callsOf(each.messages);
        for (const { parts } of shown) {
          for (const part of parts) {
            if (part.type === "tool_result" && everCalled.has(part.id)) assert.ok(calls.has(part.id), part.id);
          }
        }
      }
    }),
    { numRuns },
  );
});

// design: 000.26d
test("retains or repeats the newest request verbatim", () => {
  fc.assert(
    fc.property(cases, (each) => {
      const newest = each.messages.findLast((message) => isUserRequest(message));
      if (newest === undefined || requestText(newest) === "") return;
      const running = newest.turnId === each.turnId;
      if (!running && !each.settings.append_last_request) return;
      for (const { after } of compacted(each)) {
        const texts = promptOf(after, each.messages).flatMap(({ parts }) =>
          parts.flatMap((part) => (part.type === "text" ? [part.text] : [])),
        );
        assert.ok(
          texts.some((text) => text.includes(requestText(newest))),
          requestText(newest).slice(0, 30),
        );
      }
    }),
    { numRuns },
  );
});

test("preserves every request of a running turn verbatim across repeated compactions", () => {
  fc.assert(
    fc.property(cases, (each) => {
      if (each.turnId === null) return;
      // New messages arrive in batches, with a compaction after each.
      let record: ViewRecord | null = null;
      for (const end of [0.3, 0.6, 1].map((share) => Math.ceil(share * each.messages.length))) {
        const messages = each.messages.slice(0, end);
        const turnId = messages.at(-1)?.turnId ?? null;
        const plan = planned({ ...each, turnId }, record, "check", messages);
        if (plan !== null) record = carriedOut(each, record, plan);
        const shown = JSON.stringify(viewMessages(record, messages));
        for (const message of messages) {
          if (message.turnId !== turnId || !isUserRequest(message)) continue;
          assert.ok(shown.includes(requestText(message)), requestText(message).slice(0, 30));
        }
      }
    }),
    { numRuns },
  );
});

test("saves a tenth per round and needs at most four rounds", () => {
  fc.assert(
    fc.property(cases, (each) => {
      for (const { plan, before, after } of compacted(each)) {
        const shown = (record: ViewRecord | null) => viewMessages(record, each.messages);
        const count = (record: ViewRecord | null) => shown(record).filter((message) => message.seq > 0).length;
        if (plan.trigger === "messages") assert.ok(count(after) <= 0.9 * count(before));
        else assert.ok(estimateTokens(shown(after)) <= 0.9 * estimateTokens(shown(before)));
        assert.equal(plan.tokensBefore, estimateTokens(shown(before)));
        assert.ok(estimateTokens(shown(after)) <= plan.tokensAfter);
      }
    }),
    { numRuns },
  );
});

test("does nothing or saves another tenth when the same trigger recurs between turns", () => {
  fc.assert(
    fc.property(cases, (each) => {
      const first = planned(each, null, each.cause);
      if (first === null || first.trigger === "messages") return;
      const record = carriedOut(each, null, first);
      const second = planned(each, record, each.cause);
      if (second === null || second.trigger === "messages") return;
      const after = carriedOut(each, record, second);
      const tokens = (of: ViewRecord) => estimateTokens(viewMessages(of, each.messages));
      assert.ok(tokens(after) <= 0.9 * tokens(record));
    }),
    { numRuns },
  );
});

test("increments versions by one and rejects a plan for an older record", () => {
  fc.assert(
    fc.property(cases, (each) => {
      for (const { plan, before, after } of compacted(each)) {
        assert.equal(after.version, (before?.version ?? 0) + 1);
        assert.equal(nextRecord(after, plan, "late"), null);
      }
    }),
    { numRuns },
  );
});

// design: switch.8
test("keeps the protected beginning unchanged except for its reasoning", () => {
  fc.assert(
    fc.property(cases, (each) => {
      for (const { after } of compacted(each)) {
        const head = each.messages
          .filter((message) => message.seq <= after.keepFirstTo)
          .map((message) => ({ ...message, parts: message.parts.filter((part) => part.type !== "reasoning") }));
        assert.deepEqual(viewMessages(after, each.messages).slice(0, head.length), head);
        const alone = buildPrompt(head);
        const prompt = promptOf(after, each.messages);
        assert.deepEqual(prompt.slice(0, Math.max(0, alone.length - 1)), alone.slice(0, -1));
        assert.deepEqual(prompt[alone.length - 1]?.parts.slice(0, alone.at(-1)?.parts.length), alone.at(-1)?.parts);
      }
    }),
    { numRuns },
  );
});

test("only appends to the prompt while the record is unchanged", () => {
  fc.assert(
    fc.property(cases, fc.integer({ min: 1, max: 24 }), (each, added) => {
      const messages = each.messages.slice(0, -added);
      const plan = planned(each, null, "demand", messages);
      if (plan === null) return;
      const record = carriedOut(each, null, plan);
      const next = each.messages.findIndex((message, index) => index >= messages.length && message.role === "user");
      if (next < 0 || each.messages.slice(messages.length, next).some((message) => message.role === "tool")) return;
      const before = promptOf(record, messages);
      const after = promptOf(record, each.messages);
      assert.deepEqual(after.slice(0, Math.max(0, before.length - 1)), before.slice(0, -1));
    }),
    { numRuns },
  );
});

test("removes reasoning from before a compaction", () => {
  fc.assert(
    fc.property(cases, (each) => {
      for (const { after } of compacted(each)) {
        for (const message of viewMessages(after, each.messages)) {
          assert.ok(message.parts.every((part) => part.type !== "reasoning"));
        }
      }
    }),
    { numRuns },
  );
});

test("applies the same limits to the fallback summary", () => {
  fc.assert(
    fc.property(cases, (each) => {
      const plan = planned(each, null, "check");
      if (plan === null || plan.form === null) return;
      const gone = each.messages.filter((message) => message.seq > plan.keepFirstTo && message.seq < plan.fromSeq);
      assert.equal(gone.length, plan.removed);
      const record = nextRecord(null, plan, fallbackSummary(gone).summary);
      assert.ok(record?.summary?.includes(`${gone.length} message`));
      assert.equal(illegal(promptOf(record, each.messages)), undefined);
      assert.ok(estimateTokens(viewMessages(record, each.messages)) <= plan.tokensAfter);
    }),
    { numRuns },
  );
});
