// Requests to the model stay valid and grow only at their end, in spite of cancellation, compaction, steering and
// crashes.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CompactionSettings, OutputMode, Part } from "@parley/contracts";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import type { StopReason } from "../../src/model/provider.ts";
import { fingerprints, firstDifference } from "../../src/session/prefix-check.ts";
import { illegal } from "../compaction/histories.ts";
import { points, rareTools, SessionModel, type CallEnd, type Input, type Request, type Step } from "./session-model.ts";
import { owner } from "./support.ts";

const words = fc.oneof(
  { weight: 6, arbitrary: fc.string({ minLength: 1, maxLength: 40 }) },
  { weight: 1, arbitrary: fc.constantFrom("", " ", "\n\n", "[Cut off: your last answer reached the length limit.") },
  { weight: 2, arbitrary: fc.integer({ min: 100, max: 2_000 }).map((length) => "x".repeat(length)) },
);
const said = words.map((text): Part => ({ type: "text", text }));

const input: fc.Arbitrary<Input> = fc.record({
  from: fc.constantFrom(
    owner,
    { ...owner, channel: "internal", origin: "subagent" as const },
    { ...owner, role: "guest" as const },
  ),
  parts: fc.array(
    fc.oneof(
      { weight: 5, arbitrary: said },
      { weight: 1, arbitrary: fc.constant<Part>({ type: "binary", mediaType: "image/png", data: "AAAA" }) },
    ),
    { minLength: 1, maxLength: 2 },
  ),
  steers: fc.boolean(),
});

const stopReasons: fc.Arbitrary<StopReason> = fc.oneof(
  { weight: 6, arbitrary: fc.constant("tool_use" as const) },
  { weight: 3, arbitrary: fc.constant("end_turn" as const) },
  { weight: 2, arbitrary: fc.constantFrom("max_tokens" as const, "pause_turn" as const) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      "refusal" as const,
      "stop_sequence" as const,
      "model_context_window_exceeded" as const,
      "other" as const,
    ),
  },
);

const replyPart = fc.oneof(
  { weight: 4, arbitrary: said },
  { weight: 2, arbitrary: words.map((text): Part => ({ type: "reasoning", text, signature: `of ${text}` })) },
  { weight: 1, arbitrary: fc.constant<Part>({ type: "provider", provider: "anthropic", raw: '{"type":"x"}' }) },
);

const compactionSettings: fc.Arbitrary<CompactionSettings> = fc.record({
  strategies: fc.uniqueArray(fc.constantFrom("summarize" as const, "clear_tool_results" as const, "trim" as const)),
  trigger_share: fc.constantFrom(0, 0.3, 0.75),
  trigger_tokens: fc.constantFrom(0, 300),
  trigger_turns: fc.constantFrom(0, 2),
  keep_first: fc.constantFrom(0, 1, 3),
  keep_last: fc.constantFrom(0, 1, 4),
  keep_last_turns: fc.constantFrom(0, 1),
  keep_share: fc.constantFrom(0, 0.3),
  append_last_request: fc.boolean(),
  memory_flush: fc.constant(false),
  idle_minutes: fc.constant(0),
  max_messages: fc.constantFrom(0, 0, 5),
});

/** Once in this many steps. */
const seldom = <T>(arbitrary: fc.Arbitrary<T>, steps: number) =>
  fc.oneof({ weight: steps - 1, arbitrary: fc.constant(null) }, { weight: 1, arbitrary });

const step: fc.Arbitrary<Step> = fc.record({
  input: fc.oneof(
    { weight: 2, arbitrary: fc.constant<Input[]>([]) },
    { weight: 1, arbitrary: fc.array(input, { maxLength: 2 }) },
  ),
  contexts: fc.oneof(
    { weight: 5, arbitrary: fc.constant<string[]>([]) },
    { weight: 1, arbitrary: fc.array(fc.string({ minLength: 1, maxLength: 10 }), { maxLength: 2 }) },
  ),
  calls: fc.array(
    fc.oneof(
      { weight: 6, arbitrary: fc.constant<CallEnd>("done") },
      { weight: 1, arbitrary: fc.constantFrom<CallEnd>("failed", "lost", "waits") },
    ),
    { minLength: 1, maxLength: 3 },
  ),
  results: fc.array(words, { minLength: 1, maxLength: 3 }),
  rewritten: fc.boolean(),
  compaction: seldom(
    fc.record({
      settings: compactionSettings,
      cause: fc.constantFrom("check" as const, "check" as const, "overflow" as const, "demand" as const),
      usableTokens: fc.constantFrom(300, 1_000, 4_000),
    }),
    4,
  ),
  reply: fc.record({
    parts: fc.array(replyPart, { maxLength: 3 }),
    calls: fc.array(
      fc.oneof(
        fc.record({
          name: fc.constantFrom("read", "message", "tool_search", ...rareTools),
          input: fc.constantFrom("{}", '{"text":"hello"}', "{"),
        }),
        fc.record({
          name: fc.constant("tool_call"),
          input: fc.constantFrom(
            ...rareTools.map((tool) => JSON.stringify({ tool, input: { a: 1 } })),
            '{ "tool": "message", "input": {"text":"hello"} }',
            '{"tool":"gone"}',
            "{}",
            "{",
          ),
        }),
      ),
      { maxLength: 3 },
    ),
    stopReason: stopReasons,
  }),
  stopHook: fc.boolean(),
  crash: seldom(fc.constantFrom(...points), 6),
  readBack: fc.oneof(
    { weight: 3, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: fc.integer({ min: 2, max: 8 }) },
  ),
  cancel: seldom(fc.constantFrom(...points), 10),
  shown: words,
});

const histories = fc.record({
  around: fc.record({
    output: fc.constantFrom<OutputMode>("final_text", "message_tool", "both"),
    onMaxTokens: fc.constantFrom<("nudge" | "compact" | "exit")[]>(["nudge", "exit"], ["compact", "nudge"], ["exit"]),
    maxNudges: fc.constantFrom(0, 2),
    unspoken: fc.constantFrom("deliver" as const, "log" as const, "reprompt" as const),
  }),
  textOnly: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
  steps: fc.array(step, { minLength: 1, maxLength: 24, size: "max" }),
});

function refused({ prompt, paused }: Request): string | undefined {
  const last = prompt.at(-1);
  if (last === undefined) return "there is nothing in it";
  if (last.role !== "user" && !paused) return "it ends with the model's own words";
  return illegal(prompt);
}

const quiet: Step = {
  input: [],
  contexts: [],
  calls: ["done"],
  results: ["ok"],
  rewritten: false,
  compaction: null,
  reply: { parts: [], calls: [], stopReason: "end_turn" },
  stopHook: false,
  crash: null,
  readBack: null,
  cancel: null,
  shown: "",
};

test("keeps the prefix when an answer under a renewed one is cut off", () => {
  const session = new SessionModel(
    { output: "final_text", onMaxTokens: ["exit"], maxNudges: 0, unspoken: "deliver" },
    false,
  );
  const says = (text: string, steers: boolean): Input => ({ from: owner, parts: [{ type: "text", text }], steers });
  const settings: CompactionSettings = {
    strategies: ["summarize"],
    trigger_share: 0,
    trigger_tokens: 0,
    trigger_turns: 0,
    keep_first: 0,
    keep_last: 0,
    keep_last_turns: 0,
    keep_share: 0,
    append_last_request: false,
    memory_flush: false,
    idle_minutes: 0,
    max_messages: 0,
  };
  const thought: Part = { type: "reasoning", text: "x".repeat(2_000), signature: "of x" };
  const call = { name: "cron", input: "{}" };
  const steps: Partial<Step>[] = [
    { input: [says("go", false)], reply: { parts: [thought], calls: [call], stopReason: "tool_use" } },
    // The prefix after the compaction contains the tool that was called.
    { compaction: { settings, cause: "overflow", usableTokens: 300 }, stopHook: true },
    // The next leader reads back no answer, so it takes a prefix without that tool.
    { input: [says("later", false), says("now", true)], crash: "asked", readBack: 2 },
    { cancel: "asked", shown: "Cut" },
    {},
  ];
  for (const step of steps) session.run({ ...quiet, ...step });
  const [cut, next] = session.requests.slice(-2);
  assert.ok(cut !== undefined && next !== undefined && cut.turnId !== next.turnId && cut.era === next.era);
  assert.notEqual(session.requests.at(-4)?.prefix, cut.prefix, "the prefix was not renewed");
  const changed = firstDifference(fingerprints(cut.prefix, cut.prompt), fingerprints(next.prefix, next.prompt));
  assert.equal(changed, undefined, "the sent prefix has changed");
});

// design: interaction.2
test("sends valid requests that continue the previous one for any events in a session", () => {
  const seen = { requests: 0, continued: 0, longest: 0, eras: 0 };
  const fullRuns = 12_000;
  const numRuns = propertyRuns(fullRuns);
  fc.assert(
    fc.property(histories, ({ around, textOnly, steps }) => {
      const session = new SessionModel(around, textOnly);
      for (const each of steps) session.run(each);
      let before: { era: string; prints: string[] } | undefined;
      for (const request of session.requests) {
        assert.equal(refused(request), undefined);
        for (const part of request.prompt.flatMap(({ parts }) => parts)) {
          if (part.type === "tool_call") assert.deepEqual(part, session.written.get(part.id), "a call was changed");
        }
        const prints = fingerprints(request.prefix, request.prompt);
        if (before?.era === request.era) {
          assert.equal(firstDifference(before.prints, prints), undefined, "the sent prefix has changed");
          seen.continued += 1;
        } else seen.eras += 1;
        before = { era: request.era, prints };
        seen.requests += 1;
        seen.longest = Math.max(seen.longest, request.prompt.length);
      }
    }),
    { numRuns },
  );
  // The property is meaningless for sessions in which nothing happens.
  const part = numRuns / fullRuns;
  assert.ok(
    seen.requests > 50_000 * part && seen.continued > 20_000 * part && seen.eras > 10_000 * part && seen.longest > 10,
    JSON.stringify(seen),
  );
});
