// The model request for a sampling request, and the stop reason of its answer: pure.
import assert from "node:assert/strict";
import { test } from "node:test";
import { textOf } from "@parley/contracts";
import fc from "fast-check";
import { sampleRequest, stopReasonOf } from "../../src/sampling/service.ts";

const sample = {
  server: "notes",
  system: "Be a poet.",
  messages: [
    { role: "user" as const, parts: [{ type: "text" as const, text: "A line?" }] },
    { role: "assistant" as const, parts: [{ type: "text" as const, text: "Which?" }] },
    { role: "user" as const, parts: [{ type: "text" as const, text: "Any." }] },
  ],
  maxTokens: 100,
  stopSequences: ["END"],
};

test("marks all text of the server, keeps the model's text and sends no tools", () => {
  const { system, messages, tools, stopSequences } = sampleRequest(sample, 1_000, "00ff00ff");
  assert.match(system, /MCP server "notes"/);
  assert.ok(system.endsWith("[untrusted 00ff00ff]\nBe a poet.\n[end of untrusted 00ff00ff]"));
  assert.deepEqual(
    messages.map(({ role, parts }) => [role, textOf(parts)]),
    [
      ["user", "[untrusted 00ff00ff]\nA line?\n[end of untrusted 00ff00ff]"],
      ["assistant", "Which?"],
      ["user", "[untrusted 00ff00ff]\nAny.\n[end of untrusted 00ff00ff]"],
    ],
  );
  assert.deepEqual([tools, stopSequences], [[], ["END"]]);
});

test("adds no instructions when the server sends none", () => {
  for (const system of [null, "  "]) {
    assert.doesNotMatch(sampleRequest({ ...sample, system }, 10, "m").system, /server's instructions/);
  }
});

test("limits the answer to the smaller of the setting and the request", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 99_999 }), fc.integer({ min: 1, max: 64_000 }), (wanted, allowed) => {
      const { maxOutputTokens } = sampleRequest({ ...sample, maxTokens: wanted }, allowed, "m");
      assert.ok(maxOutputTokens <= wanted && maxOutputTokens <= allowed && maxOutputTokens >= 1);
    }),
  );
});

test("translates stop reasons to the protocol's terms and passes on unknown ones", () => {
  assert.equal(stopReasonOf("end_turn", "end_turn"), "endTurn");
  assert.equal(stopReasonOf("max_tokens", "length"), "maxTokens");
  assert.equal(stopReasonOf("model_context_window_exceeded", "x"), "maxTokens");
  assert.equal(stopReasonOf("stop_sequence", "stop"), "stopSequence");
  assert.equal(stopReasonOf("refusal", "refusal"), "refusal");
  assert.equal(stopReasonOf("other", "content_filter"), "content_filter");
});
