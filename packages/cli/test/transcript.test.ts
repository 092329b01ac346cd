import assert from "node:assert/strict";
import { test } from "node:test";

import type { Message, Part, SessionEvent } from "@parley/contracts";

import { TranscriptRenderer, shortInput } from "../src/chat/renderer.ts";
import { Transcript, type Piece } from "../src/chat/transcript.ts";
import { plain } from "../src/io.ts";

const turnId = "t";
const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
const cost = { micros: 0, unpricedCalls: 0 };

const started: SessionEvent = { type: "turn.started", turnId, inboxIds: [], attempt: 1 };
const delta = (text: string, step = 1, attempt = 1): SessionEvent => ({
  type: "text.delta",
  turnId,
  step,
  attempt,
  text,
});
const thought = (text: string): SessionEvent => ({ type: "reasoning.delta", turnId, step: 1, attempt: 1, text });
const retry: SessionEvent = { type: "model.retry", turnId, step: 1, attempt: 2, delayMs: 2_000, reason: "overloaded" };
function message(role: Message["role"], ...parts: Part[]): SessionEvent {
  return { type: "message", seq: 1, message: { seq: 1, role, turnId, parts, model: null, createdAt: "" } };
}
const answer = (text: string): SessionEvent => message("assistant", { type: "text", text });
function finished(text: string, state: "done" | "failed" | "cancelled" = "done"): SessionEvent {
  return { type: "turn.finished", seq: 2, turnId, state, exitReason: "end_turn", text, usage, cost };
}
const toolStarted = (callId: string): SessionEvent => ({
  type: "tool.started",
  turnId,
  callId,
  tool: "ls",
  input: '{"path":"."}',
});
const toolFinished = (callId: string, isError = false): SessionEvent => ({
  type: "tool.finished",
  turnId,
  callId,
  tool: "ls",
  isError,
  content: "a\nb",
  durationMs: 12,
});

/** What is shown of these events; a `null` is a new connection. */
function shown(...events: (SessionEvent | null)[]): Piece[] {
  const transcript = new Transcript({ showSaid: false });
  return events.flatMap((event) => {
    if (event !== null) return transcript.pieces(event);
    transcript.connected();
    return [];
  });
}

function textOf(pieces: Piece[]): string {
  return pieces
    .map((piece) => (piece.type === "text" || piece.type === "notice" ? piece.text : `<${piece.type}>`))
    .join("");
}

test("text is shown as it comes, and the committed message adds only what was lost", () => {
  assert.equal(
    textOf(shown(started, delta("one"), delta(" two"), answer("one two"), finished("one two"))),
    "one two<end>",
  );
  assert.equal(textOf(shown(started, delta("one"), answer("one two"), finished("one two"))), "one two<end>");
  assert.equal(textOf(shown(answer("one two"), finished("one two"))), "one two<end>");
});

test("after a new connection in the middle of a call nothing is shown twice and nothing is left out", () => {
  const events = [started, delta("one"), null, delta(" three"), delta(" four"), answer("one two three four")];
  assert.equal(textOf(shown(...events, finished("one two three four"))), "one two three four<end>");
});

test("whoever comes in the middle of a call sees the text once it is committed", () => {
  assert.equal(textOf(shown(delta("two"), delta(" three"), answer("one two three"))), "one two three");
});

test("how far a call has come is shown beside it", () => {
  const moved = (total: number | null, text: string): SessionEvent => ({
    type: "tool.progress",
    turnId,
    callId: "c",
    tool: "ls",
    progress: { done: 3, total, message: text },
  });
  const pieces = shown(started, toolStarted("c"), moved(7, "digging"), moved(null, ""), toolFinished("c"));
  assert.deepEqual(
    pieces.flatMap((piece) => (piece.type === "aside" ? [piece.text] : [])),
    ["ls: 3 of 7, digging", "ls: 3"],
  );
});

test("a call that begins after a new connection is shown as it comes again", () => {
  const pieces = shown(started, null, toolStarted("c"), toolFinished("c"), delta("now", 2), delta(" live", 2));
  assert.equal(textOf(pieces), "<tool_started><tool_finished>now live");
});

test("a try that repeats what is shown shows only what is new", () => {
  const pieces = shown(
    started,
    delta("one two"),
    retry,
    delta("one", 1, 2),
    delta(" two three", 1, 2),
    answer("one two three"),
  );
  assert.equal(textOf(pieces), "one two<retry> three");
});

test("a try that says something else says so, once", () => {
  const pieces = shown(started, delta("one"), retry, delta("eins", 1, 2), delta(" zwei", 1, 2), answer("eins zwei"));
  assert.equal(textOf(pieces), "one<retry><anew>eins zwei");
});

test("a turn that another leader takes up does not repeat its text", () => {
  assert.equal(
    textOf(shown(started, delta("one two"), started, delta("one two"), delta(" three"), answer("one two three"))),
    "one two three",
  );
});

test("late deltas of a committed call are not shown", () => {
  assert.equal(textOf(shown(started, delta("one"), answer("one"), delta("one"))), "one");
});

test("what the user is told beyond the model's words is a notice", () => {
  assert.equal(textOf(shown(started, answer("half"), finished("half\n\n[cut off]"))), "half[cut off]<end>");
  assert.equal(textOf(shown(started, delta("ha"), answer("ha"), finished("Stopped.", "cancelled"))), "haStopped.<end>");
});

test("thinking is shown as it comes and never as an answer", () => {
  const pieces = shown(
    started,
    thought("hm"),
    delta("ok"),
    message("assistant", { type: "reasoning", text: "hm" }, { type: "text", text: "ok" }),
  );
  assert.deepEqual(pieces, [
    { type: "thinking", text: "hm" },
    { type: "text", text: "ok" },
  ]);
});

test("a tool call whose live events were lost is shown from the messages, with its arguments", () => {
  const call: Part = { type: "tool_call", id: "c", name: "ls", input: '{"path":"."}' };
  const result: Part = { type: "tool_result", id: "c", name: "ls", content: "a", isError: false };
  assert.deepEqual(shown(message("assistant", call), message("tool", result)), [
    {
      type: "tool_finished",
      callId: "c",
      tool: "ls",
      input: '{"path":"."}',
      isError: false,
      content: "a",
      durationMs: null,
    },
  ]);
  const live = shown(message("assistant", call), toolStarted("c"), toolFinished("c"), message("tool", result));
  assert.deepEqual(
    live.map(({ type }) => type),
    ["tool_started", "tool_finished"],
  );
});

function painted(canRewrite: boolean, events: SessionEvent[]): string {
  const painting = new TranscriptRenderer({ paint: plain, width: () => 60, canRewrite });
  return shown(...events)
    .map((piece) => painting.draw(piece))
    .join("");
}

test("a tool's line names the tool, its arguments, its time and its result, with a mark", () => {
  assert.equal(painted(false, [started, toolStarted("c"), toolFinished("c")]), "… ls .\n✓ ls .  12 ms  a b\n");
  assert.equal(painted(false, [started, toolStarted("c"), toolFinished("c", true)]), "… ls .\n✗ ls .  12 ms  a b\n");
});

test("on a terminal a finished call takes the place of its own line, and of no other", () => {
  const up = "\u001B[1A\r\u001B[2K";
  assert.equal(painted(true, [started, toolStarted("c"), toolFinished("c")]), `… ls .\n${up}✓ ls .  12 ms  a b\n`);
  const two = painted(true, [started, toolStarted("c"), toolStarted("d"), toolFinished("c"), toolFinished("d")]);
  assert.ok(!two.includes(up));
});

test("text, tools and the end each begin on a line of their own", () => {
  const events = [
    started,
    delta("Let me look."),
    toolStarted("c"),
    toolFinished("c"),
    delta("Done.", 3),
    answer("Done."),
    finished("Done."),
  ];
  assert.equal(painted(false, events), "Let me look.\n… ls .\n✓ ls .  12 ms  a b\nDone.\n");
});

test("what a model or a tool writes cannot steer the terminal", () => {
  const text = painted(false, [started, delta("a\u001B[2Jb\u0007\r"), finished("")]);
  assert.equal(text, "ab\n");
});

test("arguments are shown short: one value alone, several by name", () => {
  assert.equal(shortInput('{"command":"ls -la"}'), "ls -la");
  assert.equal(shortInput('{"path":"a","limit":3}'), "path=a limit=3");
  assert.equal(shortInput("not json"), "not json");
});

test("a wait, a question, a sub-agent, a compaction, another model and a notice each get a line that says so", () => {
  const painting = new TranscriptRenderer({ paint: plain, width: () => 100, canRewrite: false });
  const approval = { turnId, approvalId: "AB12", callId: "c", tool: "exec" };
  const lines = shown(
    started,
    { type: "subagent.started", turnId, callId: "c", sessionId: "s1", profile: "reader", mode: "background" },
    { type: "approval.requested", seq: 3, ...approval, summary: "git push", reason: "high risk", expiresAt: "" },
    { type: "turn.parked", turnId, waitingFor: ["exec", "exec"] },
    { type: "approval.decided", seq: 4, ...approval, allowed: false, by: "owner (http)" },
    { type: "compaction.started", turnId, trigger: "share" },
    { type: "compacted", seq: 5, turnId, trigger: "share", strategy: "summarize", tokensBefore: 90, tokensAfter: 9 },
    { type: "model.failover", turnId, from: "a", to: "b", reason: "overloaded" },
    { type: "notice", turnId, text: "the budget is nearly used" },
  ).map((piece) => painting.draw(piece));
  assert.deepEqual(lines.join("").trimEnd().split("\n"), [
    "· sub-agent reader started, in the background (s1)",
    "? exec  git push",
    "  high risk",
    "  y = approve · a = approve, also similar calls · n = deny   (AB12)",
    "· waiting for exec",
    "✗ exec denied by owner (http)",
    "· compacting: earlier messages are being summarised",
    "· compacted (summarize): 90 → 9 tokens",
    "· a → b: overloaded",
    "· the budget is nearly used",
  ]);
});

test("what the loop says to the model is not shown as said by somebody; the report of a sub-agent is", () => {
  const watching = new Transcript({ showSaid: true });
  const text = { type: "text" as const, text: "[Cut off: go on]" };
  assert.deepEqual(watching.pieces(message("user", text)), []);
  const from = {
    channel: "internal",
    account: "subagent",
    conversation: "k",
    contact: { id: "s1" },
    role: "owner" as const,
    origin: "subagent" as const,
  };
  const report = { seq: 2, role: "user" as const, turnId, parts: [text], model: null, createdAt: "", from };
  assert.deepEqual(shown({ type: "message", seq: 2, message: report }), [
    { type: "aside", text: text.text, tone: "plain" },
  ]);
});
