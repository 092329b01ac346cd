// A running turn's part of its session's log.
import assert from "node:assert/strict";
import { test } from "node:test";
import { noCost, noUsage } from "@parley/contracts";
import {
  closedParts,
  committedEvents,
  toolIntent,
  messagesOf,
  toolStep,
  unansweredMessages,
} from "../../src/session/log-records.ts";
import { answer, loopSays, message, person, text, used } from "./support.ts";

test("takes the newest messages as the turn's, ignoring earlier turns of the session", () => {
  const before = [person("hello", { turnId: "earlier" }), message("assistant", [text("hi")], { turnId: "earlier" })];
  const mine = [person("and now?"), answer("well")];
  assert.deepEqual(messagesOf("turn", [...before, ...mine]), mine);
  assert.deepEqual(messagesOf("turn", mine), mine);
  assert.deepEqual(messagesOf("turn", before), []);
});

test("returns no unanswered messages after an answer, so hooks run once on each message", () => {
  const asked = person("hello");
  assert.deepEqual(unansweredMessages([asked]), [asked]);
  assert.deepEqual(unansweredMessages([asked, answer("one moment")]), []);
  const note = loopSays([text("go on")]);
  assert.deepEqual(unansweredMessages([asked, answer("one moment"), note]), [note]);
  const round = used("read", {}, "…");
  assert.deepEqual(unansweredMessages([asked, ...round]), round.slice(1));
});

test("closes an answer with its reason and time", () => {
  const at = "2026-01-01T00:00:00.000Z";
  assert.deepEqual(closedParts([text("hi")], "end_turn", at), [text("hi"), { type: "finish", reason: "end_turn", at }]);
  const stopped = { type: "finish", reason: "stop_sequence", stopSequence: "##", at };
  assert.deepEqual(closedParts([], "stop_sequence", at, "##"), [stopped]);
});

test("commits a call of an unknown tool like any other, as repeatable", () => {
  const intent = toolIntent({ type: "tool_call", id: "c1", name: "nosuch", input: "{}" }, { find: () => undefined });
  assert.deepEqual(intent, { callId: "c1", tool: "nosuch", class: "pure", input: "{}" });
  const step = toolStep("turn", 3, intent);
  assert.deepEqual([step.n, step.state, step.result, step.tool], [3, "intended", null, "nosuch"]);
});

test("returns the events of a commit in log order: results, reply, note, end", () => {
  const parts = [text("done")];
  const results = [{ type: "tool_result" as const, id: "c1", name: "read", content: "…", isError: false }];
  const callUsage = { ...noUsage, inputTokens: 4, outputTokens: 2 };
  const written = { turnId: "turn", results, parts, model: "m", note: [text("go on")], tainted: false, callUsage };
  const at = "2026-01-01T00:00:00.000Z";
  const spent = { usage: noUsage, cost: noCost, at };
  const told = committedEvents(
    { ...written, finish: null },
    { resultsSeq: 7, messageSeq: 8, noteSeq: 9, finishSeq: null, ...spent },
  );
  assert.deepEqual(
    told.map((event) => [event.seq, event.type === "message" ? event.message.role : event.type]),
    [
      [7, "tool"],
      [8, "assistant"],
      [9, "user"],
    ],
  );
  assert.deepEqual(
    told.map((event) => event.type === "message" && event.usage),
    [undefined, callUsage, undefined],
  );
  const finish = { state: "done" as const, exitReason: "end_turn" as const, text: "done" };
  const last = committedEvents(
    { ...written, finish },
    { resultsSeq: null, messageSeq: 10, noteSeq: null, finishSeq: 11, ...spent },
  );
  assert.deepEqual(
    last.map(({ seq, type }) => [seq, type]),
    [
      [10, "message"],
      [11, "turn.finished"],
    ],
  );
});
