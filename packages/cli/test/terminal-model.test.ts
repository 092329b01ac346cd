import assert from "node:assert/strict";
import { test } from "node:test";

import { visibleWidth } from "@earendil-works/pi-tui";
import type { Message, Part, Sender, SessionEvent } from "@parley/contracts";
import { propertyRuns } from "@parley/testing/property-runs";
import fc from "fast-check";

import { plain } from "../src/io/io.ts";
import { linesOf } from "../src/terminal/entry-lines.ts";
import { elapsed } from "../src/terminal/lines.ts";
import { type ChatInput, ChatModel } from "../src/terminal/model.ts";
import { activityOf, type ChatState, type Entry, openQuestions } from "../src/terminal/state.ts";
import { themeOf } from "../src/terminal/theme.ts";

const turnId = "t";
const usage = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0 };
const cost = { micros: 100, unpricedCalls: 0 };
const owner: Sender = {
  channel: "http",
  account: "default",
  conversation: "cli",
  contact: { id: "owner" },
  role: "owner",
  origin: "user",
};

const started: SessionEvent = { type: "turn.started", turnId, inboxIds: [], attempt: 1 };
const delta = (text: string, step = 1): SessionEvent => ({ type: "text.delta", turnId, step, attempt: 1, text });
function message(role: Message["role"], parts: Part[], from?: Sender): SessionEvent {
  const content = { seq: 1, role, turnId, parts, model: null, createdAt: "", ...(from === undefined ? {} : { from }) };
  return { type: "message", seq: 1, message: content };
}
const said = (text: string, from: Sender = owner): SessionEvent => message("user", [{ type: "text", text }], from);
const answer = (text: string): SessionEvent => message("assistant", [{ type: "text", text }]);
const finished: SessionEvent = {
  type: "turn.finished",
  seq: 2,
  turnId,
  state: "done",
  exitReason: "end_turn",
  text: "",
  usage,
  cost,
};
const call = (input: object, tool = "exec"): SessionEvent => ({
  type: "tool.started",
  turnId,
  callId: "c",
  tool,
  input: JSON.stringify(input),
});
const result = (content: string, isError = false, tool = "exec"): SessionEvent => ({
  type: "tool.finished",
  turnId,
  callId: "c",
  tool,
  isError,
  content,
  durationMs: 12,
});
const approval: SessionEvent = {
  type: "approval.requested",
  seq: 3,
  turnId,
  approvalId: "AB12",
  callId: "c",
  tool: "edit",
  summary: "edit: notes.md",
  reason: "medium risk",
  expiresAt: "",
  input: JSON.stringify({ path: "notes.md", old_text: "one\ntwo\n", new_text: "one\n2\n" }),
};

function after(...inputs: (ChatInput | SessionEvent)[]): ChatState {
  const model = new ChatModel("cli");
  inputs.forEach((input, index) => {
    const isInput = [
      "event",
      "connected",
      "lost",
      "sent",
      "accepted",
      "taken",
      "settled",
      "answered",
      "stopping",
      "stopped",
      "prompt",
      "cleared",
      "entry",
    ].includes(input.type);
    model.apply(isInput ? (input as ChatInput) : { type: "event", event: input as SessionEvent }, 1_000 * index);
  });
  return model.state;
}

function drawn(entries: readonly Entry[], width = 60, isExpanded = false): string {
  return entries
    .flatMap((entry) => linesOf(entry, { theme: themeOf(plain), width, isExpanded }))
    .map((line) => line.trimEnd())
    .join("\n");
}

const sent = (id: string, text: string): ChatInput => ({ type: "sent", id, text, files: [], isCommand: false });

test("shows a message of ours once: waiting first, then where its turn took it", () => {
  const waiting = after(sent("m", "hello"), { type: "accepted", id: "m" });
  assert.deepEqual(waiting.entries, []);
  assert.equal(waiting.waiting[0]?.text, "hello");
  const taken = after(sent("m", "hello"), { type: "taken", id: "m", turnId }, started, said("hello"), answer("hi"));
  assert.equal(drawn(taken.entries), "› hello\nhi");
  assert.deepEqual(taken.waiting, []);
});

test("shows a second message that joins the running turn once, between its texts", () => {
  const { entries } = after(
    sent("m", "first"),
    { type: "taken", id: "m", turnId },
    started,
    said("first"),
    answer("working"),
    sent("n", "also this"),
    { type: "taken", id: "n", turnId },
    said("also this"),
    answer("both done"),
    finished,
  );
  assert.equal(drawn(entries), "› first\nworking\n› also this\nboth done");
});

test("shows what a voice session heard, and messages of another chat of the same name", () => {
  const voice = after(started, said("spoken words", { ...owner, spoken: true }), answer("ok"), finished);
  assert.equal(drawn(voice.entries), "heard › spoken words\nok");
  const other = after(started, said("typed there"), answer("ok"), finished);
  assert.equal(drawn(other.entries), "elsewhere › typed there\nok");
});

test("replaces the text of an attempt that restarts", () => {
  const { entries } = after(
    started,
    delta("one"),
    { type: "text.delta", turnId, step: 1, attempt: 2, text: "eins" },
    answer("eins zwei"),
  );
  assert.equal(drawn(entries), "eins zwei");
});

// design: 002.39
test("reports thinking since Enter, a running tool since its start, and then thinking again", () => {
  assert.deepEqual(activityOf(after(sent("m", "x"))), { label: "thinking", sinceMs: 0 });
  const begun = [sent("m", "x"), { type: "taken" as const, id: "m", turnId }, started];
  assert.equal(activityOf(after(...begun, call({ command: "ls" })))?.label, "running exec");
  assert.equal(activityOf(after(...begun, call({ command: "ls" })))?.sinceMs, 3_000);
  assert.equal(activityOf(after(...begun, call({ command: "ls" }), result("a")))?.label, "thinking");
  assert.equal(activityOf(after(...begun, delta("hi")))?.label, "writing");
  assert.equal(activityOf(after(...begun, finished)), null);
  assert.deepEqual([elapsed(3_999), elapsed(65_000)], ["3 s", "1 min 5 s"]);
});

test("marks a command that returns a code other than 0 as failed, and shows the code", () => {
  const failed = after(started, call({ command: "false" }), result("[exit code 1 · 0.0 s]"));
  assert.equal(drawn(failed.entries), "✗ exec false  exit 1 · 12 ms");
  const done = after(started, call({ command: "true" }), result("fine\n[exit code 0 · 0.0 s]"));
  assert.equal(drawn(done.entries), "✓ exec true  12 ms\n  fine");
});

test("shows the end of what a command prints while it runs, and then its result", () => {
  const printed = Array.from({ length: 9 }, (_, line) => `line ${line}\n`).join("");
  const progress = { done: printed.length, total: null, message: "", output: printed };
  const running: SessionEvent = { type: "tool.progress", turnId, callId: "c", tool: "exec", progress };
  const begun = [started, call({ command: "make" }), running];
  const shown = drawn(after(...begun).entries);
  assert.match(shown, /line 4\n.*line 8/s);
  assert.doesNotMatch(shown, /line 3/);
  assert.doesNotMatch(drawn(after(...begun, result("built\n[exit code 0]")).entries), /line 8/);
});

test("folds long output, and shows all of it on request", () => {
  const output = Array.from({ length: 40 }, (_, index) => `line ${index + 1}`).join("\n");
  const { entries } = after(started, call({ command: "seq" }), result(output));
  const folded = drawn(entries);
  assert.match(folded, /line 3\n {2}… 35 more lines; Ctrl-O shows all\n {2}line 39/);
  assert.match(drawn(entries, 60, true), /line 20\n/);
});

test("shows the complete committed result where the event had a truncated one", () => {
  const part: Part = { type: "tool_result", id: "c", name: "exec", content: "all of it", isError: false };
  const { entries } = after(started, call({ command: "x" }), result("all"), message("tool", [part]));
  assert.match(drawn(entries), /all of it/);
});

// design: 002.7
test("says when the model sees only a part of a result", () => {
  const cut = `${"x".repeat(30)}\n[Showing 40000 of 90000 characters from exec; the others are missing here]\ny`;
  const { entries } = after(started, call({ command: "x" }), result(cut));
  assert.match(drawn(entries, 100), /the model sees part of the result: Showing 40000 of 90000 characters from exec/);
});

test("shows an edit as a difference, also while it waits for approval", () => {
  const change = { path: "notes.md", old_text: "one\ntwo\n", new_text: "one\n2\n" };
  const edited = after(started, call(change, "edit"), result("edited", false, "edit"));
  assert.equal(drawn(edited.entries), "✓ edit notes.md  12 ms\n   one\n  -two\n  +2");
  const asked = after(started, approval);
  assert.match(
    drawn(asked.entries),
    /\? edit needs approval \(AB12\)\n {2}notes\.md\n {3}one\n {2}-two\n {2}\+2\n {2}medium risk/,
  );
});

test("draws the agent's texts of a recap as Markdown, each with at most a few lines", () => {
  const recap = (text: string): Entry => ({
    kind: "recap",
    lastUsed: "2026-01-01 00:00",
    texts: [
      { by: "person", text: "**what** now?" },
      { by: "agent", text },
    ],
  });
  assert.equal(
    drawn([recap("# Plan\n\n**Two** [steps](http://a.b):\n\n* `one`\n* two")]),
    "│ continued from 2026-01-01 00:00\n│ › **what** now?\n│ Plan\n│\n│ Two steps (http://a.b):\n│\n│ - one\n│ - two",
  );
  const long = Array.from({ length: 8 }, (_, index) => `- line ${index + 1}`).join("\n");
  assert.match(drawn([recap(long)]), /│ - line 5\n│ … 3 more lines$/);
});

// design: 002.30b
test("keeps an approval open until it is decided, and adds no second one for a repeated event", () => {
  assert.equal(openQuestions(after(started, approval, approval)).length, 1);
  const decided: SessionEvent = {
    type: "approval.decided",
    seq: 4,
    turnId,
    approvalId: "AB12",
    callId: "c",
    tool: "edit",
    allowed: false,
    by: "owner (telegram)",
  };
  const state = after(started, approval, decided);
  assert.equal(openQuestions(state).length, 0);
  assert.equal(drawn(state.entries), "✗ edit notes.md denied by owner (telegram)");
  assert.equal(openQuestions(after(started, approval, finished)).length, 0);
});

test("repeats the whole reason of a denial, also of an approval that was asked before the chat began", () => {
  const message = "the notes of last year are in the archive, please change that copy instead";
  const decided = { seq: 4, turnId, approvalId: "AB12", callId: "c", tool: "edit", allowed: false, by: "owner (http)" };
  const event: SessionEvent = { type: "approval.decided", ...decided, message };
  assert.equal(
    drawn(after(started, approval, event).entries),
    `✗ edit notes.md denied by owner (http)\n  the notes of last year are in the archive, please change\n  that copy instead`,
  );
  assert.match(drawn(after(started, event).entries, 120), new RegExp(`edit denied by owner \\(http\\): ${message}$`));
});

test("closes a question when it is answered, its call ends or its turn ends", () => {
  const asked: SessionEvent = {
    type: "question.asked",
    seq: 3,
    turnId,
    callId: "c",
    question: "Which?",
    options: ["red"],
    expiresAt: "",
  };
  assert.equal(openQuestions(after(started, asked)).length, 1);
  for (const next of [{ type: "answered" as const, callId: "c" }, result("red", false, "ask_user"), finished])
    assert.equal(openQuestions(after(started, asked, next)).length, 0);
});

test("says that a message was not sent when it is cancelled before a turn took it", () => {
  const outcome = { state: "cancelled" as const, text: "Cancelled before it started." };
  const state = after(sent("m", "hello"), { type: "settled", id: "m", outcome, isReported: false });
  assert.equal(drawn(state.entries), "› hello\n· Cancelled before it started.");
});

test("shows one line of input that no person sent", () => {
  const from = { ...owner, channel: "internal", origin: "process" as const };
  const state = after(started, said("Background process ended: build (p1).\n\n[untrusted 2e: …]\nTell them.", from));
  assert.equal(drawn(state.entries), "· process: Background process ended: build (p1).");
});

// design: 002.8, 002.40
test("shows a line for each retry, sub-agent, compaction, model switch and notice", () => {
  const { entries } = after(
    started,
    { type: "model.retry", turnId, step: 1, attempt: 2, delayMs: 2_000, reason: "overloaded" },
    { type: "subagent.started", turnId, callId: "d", sessionId: "s1", profile: "reader", mode: "background" },
    { type: "turn.parked", turnId, waitingFor: ["spawn", "spawn"] },
    { type: "compacted", seq: 5, turnId, trigger: "share", strategy: "summarize", tokensBefore: 90, tokensAfter: 9 },
    { type: "model.failover", turnId, from: "a", to: "b", reason: "overloaded" },
    { type: "notice", turnId, text: "the budget is nearly used" },
  );
  assert.deepEqual(drawn(entries, 100).split("\n"), [
    "· ↻ overloaded; attempt 2 in 2.0 s",
    "· sub-agent reader started, in the background (s1)",
    "· waiting for spawn",
    "· compacted (summarize): 90 → 9 tokens",
    "· a → b: overloaded",
    "· the budget is nearly used",
  ]);
});

test("prevents text of models and tools from controlling the terminal", () => {
  const state = after(
    started,
    delta("a\u001B[2Jb\u0007\r"),
    call({ command: "x" }),
    result("\u001B]0;title\u0007c\u0000"),
  );
  assert.equal(drawn(state.entries), "ab\n✓ exec x  12 ms\n  c");
});

test("adds the tokens and the cost of ended turns", () => {
  const { spent } = after(started, finished, { ...finished, turnId: "u" });
  assert.deepEqual(spent, { inputTokens: 20, outputTokens: 10, cost: { micros: 200, unpricedCalls: 0 } });
});

const text = fc.string({
  unit: fc.constantFrom("a", " ", "\n", "東", "👩‍👩‍👧", "`", "#", "|", "-", "*", "\t", "\u001B[31m", "é", "x".repeat(30)),
  maxLength: 60,
});
const events: fc.Arbitrary<SessionEvent> = fc.oneof(
  fc.constant(started),
  text.map((each) => delta(each)),
  text.map((each) => answer(each)),
  text.map((each) => said(each)),
  text.map((each) => call({ command: each })),
  text.map((each) => call({ path: "a", old_text: each, new_text: "b" }, "edit")),
  text.map((each) => result(each)),
  text.map((each): SessionEvent => ({ type: "notice", turnId, text: each })),
  text.map((each): SessionEvent => ({ ...approval, approvalId: each, summary: each })),
  fc.constant(finished),
);

test("draws no line wider than the terminal, for any events and width", () => {
  fc.assert(
    fc.property(
      fc.array(events, { maxLength: 12 }),
      fc.integer({ min: 20, max: 200 }),
      fc.boolean(),
      (list, width, isExpanded) => {
        const { entries } = after(...list);
        for (const entry of entries) {
          for (const line of linesOf(entry, { theme: themeOf(plain), width, isExpanded }))
            assert.ok(visibleWidth(line) <= width, JSON.stringify({ line, width, kind: entry.kind }));
        }
      },
    ),
    { numRuns: propertyRuns(200) },
  );
});

test("has the same state for the same events, and shows repeated decisions and results once", () => {
  fc.assert(
    fc.property(fc.array(events, { maxLength: 12 }), (list) => {
      assert.deepEqual(after(...list), after(...list));
      const cards = after(...list)
        .entries.filter((entry) => entry.kind === "approval")
        .map(({ approvalId }) => approvalId);
      assert.equal(new Set(cards).size, cards.length);
    }),
    { numRuns: propertyRuns(100) },
  );
});
