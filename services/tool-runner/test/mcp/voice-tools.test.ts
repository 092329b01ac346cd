// Parsing of results from speech servers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { answerOf } from "../../src/mcp/voice-tools.ts";

const text = (...texts: string[]) => texts.map((each) => ({ type: "text" as const, text: each }));
const answered = { outcome: "answered", value: { session_id: "s1" } };

test("finds the JSON object in text, in a code fence, after text, or as structured content", () => {
  const json = '{"session_id":"s1"}';
  for (const content of [
    text(json),
    text(`\`\`\`json\n${json}\n\`\`\``),
    text(`Started: ${json}`),
    text("Started.", json),
  ]) {
    assert.deepEqual(answerOf({ content }), answered);
  }
  assert.deepEqual(answerOf({ content: [], structuredContent: { session_id: "s1" } }), answered);
  assert.deepEqual(answerOf({ content: text("Started."), structuredContent: { session_id: "s1" } }), answered);
});

test("returns the server's error text, and fails without a JSON object", () => {
  assert.deepEqual(answerOf({ content: text("unknown session s1"), isError: true }), {
    outcome: "failed",
    problem: "unknown session s1",
  });
  for (const content of [[], text("done"), text("[1, 2]"), text("{broken")]) {
    assert.deepEqual(answerOf({ content }), {
      outcome: "failed",
      problem: "the server's response contains no JSON object",
    });
  }
});
