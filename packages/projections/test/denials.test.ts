import assert from "node:assert/strict";
import { test } from "node:test";
import type { Part, SessionEvent } from "@parley/contracts";
import { Denials } from "../src/denials.ts";

const live: SessionEvent = { type: "tool.denied", turnId: "t", callId: "a", tool: "Bash", reason: "Not allowed" };
const refused = (id: string, content: string): Part => ({
  type: "tool_result",
  id,
  name: "exec",
  content,
  isError: true,
  refused: true,
});
const stored = (turnId: string, ...parts: Part[]): SessionEvent => ({
  type: "message",
  seq: 1,
  message: { seq: 1, role: "tool", turnId, parts, model: null, createdAt: "" },
});
const reported = (...events: SessionEvent[]) => {
  const denials = new Denials();
  return events.map((event) => denials.event(event));
};
const denial = { tool: "exec", reason: "Not allowed" };

test("reports a denied call once when its live event and its result arrive in either order", () => {
  const result = stored("t", refused("a", "Not allowed"));
  assert.deepEqual(reported(live, result), [[denial], []]);
  assert.deepEqual(reported(result, live), [[denial], []]);
});

test("reports a denied call when its live event is lost, and the same call id in another turn", () => {
  const of = (turnId: string) => stored(turnId, refused("a", "Not allowed"));
  assert.deepEqual(reported(of("t"), of("t"), of("next")), [[denial], [], [denial]]);
});

test("does not report a call that failed, or one of an unknown tool", () => {
  const failed: Part = { type: "tool_result", id: "a", name: "exec", content: "exit code 1", isError: true };
  assert.deepEqual(reported(stored("t", failed, refused("b", "Tool not found: x."))), [[]]);
});
