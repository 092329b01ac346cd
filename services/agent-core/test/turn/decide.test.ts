import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { noUsage, textOf, type OutputMode, type Part } from "@parley/contracts";
import fc from "fast-check";
import type { ModelReply, StopReason } from "../../src/model/provider.ts";
import {
  endWithAnswer,
  endWithReport,
  nextAction,
  endWithMessages,
  type DecideContext,
  type Decision,
} from "../../src/turn/next-action.ts";
import { noteKinds } from "../../src/limits/loop-guards.ts";

const outputModes: OutputMode[] = ["final_text", "message_tool", "both"];
const said: Part = { type: "text", text: "text" };
const thought: Part = { type: "reasoning", text: "hm" };
const call: Part = { type: "tool_call", id: "1", name: "read", input: "{}" };

const reply = (stopReason: StopReason, parts: Part[]): ModelReply => ({
  parts,
  stopReason,
  rawStopReason: stopReason,
  usage: noUsage,
  model: "m",
});

const context = (overrides: Partial<DecideContext> = {}): DecideContext => ({
  output: "final_text",
  sentTexts: [],
  rounds: { withoutTools: 0, nudges: 0, stopHookActive: false, reprompted: false, emptyAnswers: 0, mismatches: 0 },
  before: "",
  onMaxTokens: ["nudge", "exit"],
  maxNudges: 3,
  unspoken: "reprompt",
  canCompact: true,
  isDue: true,
  ...overrides,
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

const contexts: fc.Arbitrary<DecideContext> = fc.record({
  output: fc.constantFrom(...outputModes),
  sentTexts: fc.array(fc.constantFrom("text", "another"), { maxLength: 2 }),
  rounds: fc.record({
    withoutTools: fc.nat(5),
    nudges: fc.nat(4),
    stopHookActive: fc.boolean(),
    reprompted: fc.boolean(),
    emptyAnswers: fc.nat(3),
    mismatches: fc.nat(3),
  }),
  before: fc.constantFrom("", "begun"),
  onMaxTokens: fc.array(fc.constantFrom("nudge" as const, "compact" as const, "exit" as const), { maxLength: 3 }),
  maxNudges: fc.nat(3),
  unspoken: fc.constantFrom("deliver" as const, "log" as const, "reprompt" as const),
  canCompact: fc.boolean(),
  isDue: fc.boolean(),
});
const replies = fc.record({
  stopReason: fc.constantFrom(...stopReasons),
  parts: fc.subarray<Part>([thought, said, call]),
});

function noteOf(decision: Decision): string {
  return decision.next === "again" ? textOf(decision.note) : "";
}

describe("any reply in any mode", () => {
  test("runs tool calls for tool_use and drops them for other stop reasons", () => {
    fc.assert(
      fc.property(replies, contexts, ({ stopReason, parts }, around) => {
        const decision = nextAction(reply(stopReason, parts), around);
        assert.equal(decision.next === "tools", stopReason === "tool_use" && parts.includes(call));
        if (decision.next !== "tools") assert.ok(!decision.parts.includes(call), "a call without a result is kept");
      }),
    );
  });

  // design: 003.6
  test("never ends a turn silently and never loses text", () => {
    fc.assert(
      fc.property(replies, contexts, ({ stopReason, parts }, around) => {
        const decision = nextAction(reply(stopReason, parts), around);
        if (decision.next !== "finish") return;
        assert.notEqual(decision.finish.text.trim(), "");
        assert.ok(decision.finish.text.includes(around.before));
        if (parts.includes(said)) assert.ok(decision.finish.text.includes("text"));
      }),
    );
  });

  // design: 003.3, 000.39b
  test("continues without tools only as often as the guards allow", () => {
    fc.assert(
      fc.property(replies, contexts, ({ stopReason, parts }, around) => {
        const decision = nextAction(reply(stopReason, parts), around);
        if (decision.next !== "again" || stopReason === "pause_turn") return;
        const kind = noteOf(decision);
        if (kind.startsWith(noteKinds.unspoken)) assert.equal(around.rounds.reprompted, false);
        else if (kind.startsWith(noteKinds.empty)) assert.ok(around.rounds.emptyAnswers < 2);
        else assert.ok(kind.startsWith(noteKinds.nudge), kind);
        if (stopReason === "max_tokens" && !decision.compact) assert.ok(around.rounds.nudges < around.maxNudges);
        if (decision.compact) assert.ok(around.canCompact && (around.isDue || stopReason !== "max_tokens"));
      }),
    );
  });
});

describe("stop reasons", () => {
  // design: 003.5
  test("ends the turn for tool_use without a call and for an unknown reason", () => {
    for (const reason of ["tool_use", "other"] as const) {
      const decision = nextAction(reply(reason, [said]), context());
      assert.ok(decision.next === "finish" && decision.finish.exitReason === "end_turn", reason);
    }
  });

  // design: 003.5
  test("ends the turn for a stop sequence with an exit reason of its own", () => {
    const { next, ...end } = nextAction(reply("stop_sequence", [said, call]), context());
    const finish = { state: "done", exitReason: "stop_sequence", text: "text" };
    assert.deepEqual([next, end], ["finish", { parts: [said], finish }]);
  });

  test("calls the model again without a note when it paused itself", () => {
    const provider: Part = { type: "provider", provider: "anthropic", raw: "{}" };
    const decision = nextAction(reply("pause_turn", [said, provider]), context());
    assert.deepEqual(decision, { next: "again", parts: [said, provider], note: [], compact: false });
  });

  test("ends the turn on a refusal with the model's text or a default notice", () => {
    for (const [parts, words] of [
      [[said], "text"],
      [[], "The model declined to answer this."],
    ] as const) {
      const decision = nextAction(reply("refusal", [...parts]), context());
      assert.ok(decision.next === "finish");
      assert.deepEqual([decision.finish.exitReason, decision.finish.text], ["refusal", words]);
    }
  });

  test("compacts and continues when the window is full, or ends with a notice when it cannot", () => {
    const again = nextAction(reply("model_context_window_exceeded", [said, call]), context());
    assert.ok(again.next === "again" && again.compact);
    const end = nextAction(reply("model_context_window_exceeded", [said]), context({ canCompact: false }));
    assert.ok(end.next === "finish" && end.finish.exitReason === "max_tokens");
    assert.match(end.finish.text, /^text\n\n\[.*fills the model's window/);
  });

  // design: 004.36b
  test("asks twice for an answer instead of an empty text, and then ends", () => {
    const after = (emptyAnswers: number, more: Partial<DecideContext> = {}) =>
      nextAction(
        reply("end_turn", [{ type: "text", text: " \n" }]),
        context({ rounds: { ...context().rounds, emptyAnswers }, ...more }),
      );
    for (const count of [0, 1]) assert.match(noteOf(after(count)), /^\[Your last answer was empty:/);
    const ended = after(2);
    assert.ok(ended.next === "finish");
    assert.match(ended.finish.text, /nothing to add/);
    assert.equal(after(0, { sentTexts: ["sent"] }).next, "finish");
    assert.equal(after(0, { okToken: "HEARTBEAT_OK" }).next, "finish");
  });
});

describe("an answer that reaches its length limit", () => {
  const outcome = (decision: Decision) =>
    decision.next === "again" ? (decision.compact ? "compact" : "nudge") : decision.next;

  // design: 003.4, switch.11
  test("tries the configured actions in order and takes the first possible one", () => {
    const cases: [DecideContext["onMaxTokens"], Partial<DecideContext>, string][] = [
      [["nudge", "exit"], {}, "nudge"],
      [["nudge", "exit"], { maxNudges: 0 }, "finish"],
      [["nudge", "compact"], { maxNudges: 0 }, "compact"],
      [["compact", "nudge"], {}, "compact"],
      [["compact", "nudge"], { canCompact: false }, "nudge"],
      [["compact"], { canCompact: false }, "finish"],
      [["compact", "nudge"], { isDue: false }, "nudge"],
      [["compact"], { isDue: false }, "finish"],
      [["exit", "nudge"], {}, "finish"],
      [[], {}, "finish"],
    ];
    for (const [onMaxTokens, more, expected] of cases) {
      const decision = nextAction(reply("max_tokens", [said, call]), context({ onMaxTokens, ...more }));
      assert.equal(outcome(decision), expected, `${onMaxTokens.join()} ${JSON.stringify(more)}`);
    }
  });

  // design: 002.4, 004.36c
  test("counts consecutive nudges and marks the last answer as cut off", () => {
    const rounds = {
      withoutTools: 3,
      nudges: 3,
      stopHookActive: false,
      reprompted: false,
      emptyAnswers: 0,
      mismatches: 0,
    };
    const decision = nextAction(reply("max_tokens", [said, call]), context({ rounds }));
    assert.ok(decision.next === "finish" && decision.finish.exitReason === "max_tokens");
    assert.match(decision.finish.text, /^text\n\n\[.*length limit/);
  });

  test("joins the pieces of an answer, also when the last piece is cut off", () => {
    const whole = nextAction(reply("end_turn", [said]), context({ before: "first half" }));
    assert.ok(whole.next === "finish");
    assert.equal(whole.finish.text, "first half\n\ntext");
    const cut = nextAction(reply("max_tokens", [said]), context({ before: "first half", onMaxTokens: ["exit"] }));
    assert.ok(cut.next === "finish");
    assert.match(cut.finish.text, /^first half\n\ntext\n\n\[/);
  });
});

describe("people who see only messages of the tool `message`", () => {
  const silent = { output: "message_tool", unspoken: "reprompt" } as const;

  // design: 001.3b, 004.36b
  test("reminds a turn that sent nothing once", () => {
    const first = nextAction(reply("end_turn", [said]), context(silent));
    assert.ok(first.next === "again");
    assert.match(noteOf(first), /Nothing was said/);
    const rounds = {
      withoutTools: 1,
      nudges: 0,
      stopHookActive: false,
      reprompted: true,
      emptyAnswers: 0,
      mismatches: 0,
    };
    assert.equal(nextAction(reply("end_turn", [said]), context({ ...silent, rounds })).next, "finish");
    assert.equal(nextAction(reply("end_turn", [said]), context({ ...silent, sentTexts: ["hello"] })).next, "finish");
  });

  // design: 001.3b, 001.4, switch.5
  test("sends the last text only when nothing was sent and the settings allow it", () => {
    const finish = { state: "done", exitReason: "end_turn", text: "text" } as const;
    const spoken = (unspoken: DecideContext["unspoken"], texts: string[] = []) =>
      endWithMessages(finish, { output: "message_tool", sentTexts: texts, unspoken });
    assert.equal(spoken("deliver"), "text");
    assert.equal(spoken("reprompt"), "text");
    assert.equal(spoken("log"), null);
    assert.equal(spoken("deliver", ["hello"]), null);
  });

  test("sends notices about limits, failures and refusals in every mode", () => {
    for (const output of outputModes) {
      for (const exitReason of ["max_turns", "max_budget", "max_tokens", "refusal", "aborted", "error"] as const) {
        const end = { state: "failed", exitReason, text: "I stopped here." } as const;
        assert.equal(endWithMessages(end, { output, sentTexts: ["hello"], unspoken: "log" }), "I stopped here.");
      }
    }
  });

  test("treats a stop sequence as a normal end and sends no internal text", () => {
    const end = { state: "done", exitReason: "stop_sequence", text: "for myself" } as const;
    assert.equal(endWithMessages(end, { output: "message_tool", sentTexts: ["hello"], unspoken: "deliver" }), null);
  });
});

// design: 001.34, switch.5
test("reports what a sub-agent sent to its own conversation, and says when it ended without a text", () => {
  const report = (text: string, saidHere: string[]) =>
    endWithReport({ state: "done", exitReason: "end_turn", text }, saidHere, "child").text;
  assert.equal(report("the end", ["first", "second"]), "first\n\nsecond\n\nthe end");
  assert.equal(report("first", ["first"]), "first");
  assert.equal(report("(I have nothing to add.)", ["first"]), "first");
  assert.equal(report("(I have nothing to add.)", []), "(sub-agent child ended without a text)");
});

test("sends no text twice and no silent answer after a message in the mode both", () => {
  const spoken = (text: string, texts: string[]) =>
    endWithMessages(
      { state: "done", exitReason: "end_turn", text },
      { output: "both", sentTexts: texts, unspoken: "deliver" },
    );
  assert.equal(spoken("hello", ["hello"]), null);
  assert.equal(spoken("hello", ["hi"]), "hello");
  const nothing = nextAction(reply("end_turn", []), context({ rounds: { ...context().rounds, emptyAnswers: 2 } }));
  assert.ok(nothing.next === "finish");
  assert.equal(spoken(nothing.finish.text, ["hi"]), null);
  assert.equal(spoken(nothing.finish.text, []), nothing.finish.text);
});

describe("a heartbeat's answer", () => {
  const okToken = "HEARTBEAT_OK";
  const spoken = (text: string, output: OutputMode, exitReason: "end_turn" | "error" = "end_turn") =>
    endWithMessages({ state: "done", exitReason, text }, { output, sentTexts: [], unspoken: "deliver", okToken });

  test("is sent to nobody when it contains the OK token, in any output mode", () => {
    for (const output of outputModes) {
      assert.equal(spoken("HEARTBEAT_OK", output), null);
      assert.equal(spoken("All is well. HEARTBEAT_OK", output), null);
      assert.equal(spoken("The mail has come.", output), "The mail has come.");
      assert.equal(spoken("HEARTBEAT_OK", output, "error"), "HEARTBEAT_OK");
    }
  });

  test("causes no reminder, while the same text in another turn is sent", () => {
    const ok: Part = { type: "text", text: "HEARTBEAT_OK" };
    const heard = { output: "message_tool", unspoken: "reprompt" } as const;
    assert.equal(nextAction(reply("end_turn", [ok]), context({ ...heard, okToken })).next, "finish");
    assert.equal(nextAction(reply("end_turn", [ok]), context(heard)).next, "again");
    const finish = { state: "done", exitReason: "end_turn", text: "HEARTBEAT_OK" } as const;
    assert.equal(endWithMessages(finish, { output: "final_text", sentTexts: [], unspoken: "deliver" }), "HEARTBEAT_OK");
  });
});

test("uses the sent messages as the answer when only those are visible, except for notices", () => {
  const end = { state: "done" as const, exitReason: "end_turn" as const, text: "the last text" };
  assert.equal(endWithAnswer(end, "message_tool", ["one", "two"]).text, "one\n\ntwo");
  assert.equal(endWithAnswer(end, "message_tool", []).text, "the last text");
  assert.equal(endWithAnswer(end, "final_text", ["one"]).text, "the last text");
  const limit = { state: "failed" as const, exitReason: "max_turns" as const, text: "I stopped here." };
  assert.equal(endWithAnswer(limit, "message_tool", ["one"]).text, "I stopped here.");
});
