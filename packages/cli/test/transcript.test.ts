import assert from "node:assert/strict";
import { test } from "node:test";

import type { Message, Part, SessionEvent } from "@parley/contracts";

import { summarizeInput } from "../src/tables/format.ts";
import { Transcript, type Piece } from "../src/chat/transcript.ts";

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

/** The pieces shown for these events; `null`: a new connection. */
function shown(...events: (SessionEvent | null)[]): Piece[] {
  const transcript = new Transcript();
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

test("streams text, and adds only lost text from the committed message", () => {
  assert.equal(
    textOf(shown(started, delta("one"), delta(" two"), answer("one two"), finished("one two"))),
    "one two<end>",
  );
  assert.equal(textOf(shown(started, delta("one"), answer("one two"), finished("one two"))), "one two<end>");
  assert.equal(textOf(shown(answer("one two"), finished("one two"))), "one two<end>");
});

test("shows text once and complete after a reconnect in the middle of a call", () => {
  const events = [started, delta("one"), null, delta(" three"), delta(" four"), answer("one two three four")];
  assert.equal(textOf(shown(...events, finished("one two three four"))), "one two three four<end>");
});

test("shows the committed text when the start of a call was missed", () => {
  assert.equal(textOf(shown(delta("two"), delta(" three"), answer("one two three"))), "one two three");
});

test("shows the progress of a call next to it", () => {
  const moved = (total: number | null, text: string): SessionEvent => ({
    type: "tool.progress",
    turnId,
    callId: "c",
    tool: "ls",
    progress: { done: 3, total, message: text },
  });
  const pieces = shown(started, toolStarted("c"), moved(7, "digging"), moved(null, ""), toolFinished("c"));
  assert.deepEqual(
    pieces.flatMap((piece) => (piece.type === "tool_progress" ? [piece.text] : [])),
    ["3 of 7, digging", "3"],
  );
});

test("streams a call that begins after a reconnect", () => {
  const pieces = shown(started, null, toolStarted("c"), toolFinished("c"), delta("now", 2), delta(" live", 2));
  assert.equal(textOf(pieces), "<tool_started><tool_finished>now live");
});

test("shows only new text when an attempt repeats the shown text", () => {
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

test("marks a restart once when an attempt differs from the shown text", () => {
  const pieces = shown(started, delta("one"), retry, delta("eins", 1, 2), delta(" zwei", 1, 2), answer("eins zwei"));
  assert.equal(textOf(pieces), "one<retry><restart>eins zwei");
});

test("does not repeat text when another leader continues the turn", () => {
  assert.equal(
    textOf(shown(started, delta("one two"), started, delta("one two"), delta(" three"), answer("one two three"))),
    "one two three",
  );
});

test("ignores late deltas of a committed call", () => {
  assert.equal(textOf(shown(started, delta("one"), answer("one"), delta("one"))), "one");
});

test("shows text that the model did not write as a notice", () => {
  assert.equal(textOf(shown(started, answer("half"), finished("half\n\n[cut off]"))), "half[cut off]<end>");
  assert.equal(textOf(shown(started, delta("ha"), answer("ha"), finished("Stopped.", "cancelled"))), "haStopped.<end>");
});

test("streams thinking and never shows it as an answer", () => {
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

test("shows a tool call with its arguments from the messages when live events were lost", () => {
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
      isolation: null,
    },
    { type: "tool_result", callId: "c", content: "a", isDenied: false },
  ]);
  const live = shown(message("assistant", call), toolStarted("c"), toolFinished("c"), message("tool", result));
  assert.deepEqual(
    live.map(({ type }) => type),
    ["tool_started", "tool_finished", "tool_result"],
  );
});

test("prints a single argument as its value, and several with names", () => {
  assert.equal(summarizeInput('{"command":"ls -la"}'), "ls -la");
  assert.equal(summarizeInput('{"path":"a","limit":3}'), "path=a limit=3");
  assert.equal(summarizeInput("not json"), "not json");
});

test("hides messages of the loop, and shows reports of sub-agents", () => {
  const watching = new Transcript();
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
