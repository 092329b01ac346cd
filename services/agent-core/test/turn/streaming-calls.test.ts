import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { StreamingCalls } from "../../src/turn/streaming-calls.ts";

describe("what a running model call has written", () => {
  test("contains every part in order, and nothing of an earlier attempt or after the end", () => {
    const calls = new StreamingCalls();
    const at = { turnId: "t", step: 2, attempt: 1 };
    calls.begin("s", at);
    assert.equal(calls.add("s", { type: "text", text: "abc" }), 0);
    assert.equal(calls.add("s", { type: "text", text: "de" }), 3);
    assert.equal(calls.add("s", { type: "reasoning", text: "hm" }), 0);
    assert.equal(calls.add("s", { type: "tool_input", id: "1", name: "ls", text: "{" }), 0);
    assert.equal(calls.add("s", { type: "tool_input", id: "2", name: "ls", text: "{" }), 0);
    assert.equal(calls.add("s", { type: "tool_input", id: "1", name: "ls", text: "}" }), 1);
    const tools = [
      { callId: "1", tool: "ls", input: "{}" },
      { callId: "2", tool: "ls", input: "{" },
    ];
    assert.deepEqual(calls.get("s"), { ...at, text: "abcde", reasoning: "hm", tools });
    assert.equal(calls.get("other"), null);
    calls.begin("s", { ...at, attempt: 2 });
    assert.deepEqual(calls.get("s"), { ...at, attempt: 2, text: "", reasoning: "", tools: [] });
    calls.end("s");
    assert.equal(calls.get("s"), null);
  });
});
