// What the answer of a server that listens holds, in whichever way the server says it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { answerOf } from "../../src/mcp/voice-tools.ts";

const text = (...texts: string[]) => texts.map((each) => ({ type: "text" as const, text: each }));
const answered = { outcome: "answered", value: { session_id: "s1" } };

test("an answer is the object in its text, bare, in a fence or behind a word, or what is structured", () => {
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

test("a refusal is told with the server's words, and what is no object is a failure", () => {
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
