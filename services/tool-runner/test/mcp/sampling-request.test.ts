// Parsing and refusal of sampling requests. Pure.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CreateMessageRequestParams } from "@modelcontextprotocol/client";
import { agentSample, maxSampleCharacters, maxSampleMessages } from "@parley/contracts";
import fc from "fast-check";
import { readRequest, lastMessageText } from "../../src/mcp/sampling.ts";

type Params = CreateMessageRequestParams;
const text = (role: "user" | "assistant", said: string) => ({ role, content: { type: "text" as const, text: said } });
const read = (messages: Params["messages"], more: Partial<Params> = {}) =>
  readRequest({ messages, maxTokens: 10, ...more });
const problem = (messages: Params["messages"], more: Partial<Params> = {}) => {
  const request = read(messages, more);
  return "problem" in request ? request.problem : undefined;
};

test("merges messages of one role and drops empty ones", () => {
  const request = read([
    text("user", "a"),
    text("user", " "),
    text("user", "b"),
    text("assistant", "c"),
    text("user", "d"),
  ]);
  assert.ok(!("problem" in request));
  assert.deepEqual(request.messages, [
    { role: "user", blocks: ["a", "b"] },
    { role: "assistant", blocks: ["c"] },
    { role: "user", blocks: ["d"] },
  ]);
  assert.equal(lastMessageText(request), "d");
});

test("refuses an unsupported request with the reason", () => {
  const one = [text("user", "a")];
  const audio = { role: "user" as const, content: { type: "audio" as const, data: "AA==", mimeType: "audio/wav" } };
  const image = (role: "user" | "assistant") => ({
    role,
    content: { type: "image" as const, data: "AA==", mimeType: "image/png" },
  });
  assert.match(problem([]) ?? "", /the first and the last message/);
  assert.match(problem([text("assistant", "a"), text("user", "b")]) ?? "", /the first and the last message/);
  assert.match(problem([text("user", "a"), text("assistant", "b")]) ?? "", /the last message/);
  assert.match(problem([text("user", " \n")]) ?? "", /user messages with content/);
  assert.match(problem([audio]) ?? "", /audio is not supported/);
  assert.match(problem([text("user", "a"), image("assistant"), text("user", "b")]) ?? "", /image is not supported/);
  assert.match(problem(Array.from({ length: 9 }, () => image("user"))) ?? "", /pictures/);
  assert.equal(problem(Array.from({ length: 8 }, () => image("user"))), undefined);
  assert.match(problem(one, { tools: [] }) ?? "", /tools are not supported/);
  assert.match(problem(one, { maxTokens: 0 }) ?? "", /maxTokens/);
  assert.match(problem([text("user", "x".repeat(maxSampleCharacters + 1))]) ?? "", /characters/);
  assert.match(problem(one, { systemPrompt: "x".repeat(maxSampleCharacters) }) ?? "", /characters/);
  const many = Array.from({ length: maxSampleMessages + 1 }, (_, n) => text(n % 2 === 0 ? "user" : "assistant", "a"));
  assert.match(problem(many) ?? "", /messages/);
});

test("refuses any request or fits it into the bus limits", () => {
  const said = fc.oneof(fc.string({ unit: "binary", maxLength: 20 }), fc.constantFrom("", " ", "a\u0000\uD800"));
  const messages = fc.array(fc.tuple(fc.constantFrom("user" as const, "assistant" as const), said), { maxLength: 8 });
  const shape = agentSample.input.pick({ system: true, messages: true, maxTokens: true, stopSequences: true });
  fc.assert(
    fc.property(messages, fc.array(said), fc.option(said), (some, stopSequences, system) => {
      const request = read(
        some.map(([role, each]) => text(role, each)),
        { stopSequences, ...(system === null ? {} : { systemPrompt: system }) },
      );
      if ("problem" in request) return;
      const sent = request.messages.map(({ role, blocks }) => ({
        role,
        parts: blocks.map((block) => ({ type: "text", text: block })),
      }));
      const parsed = shape.parse({ ...request, messages: sent });
      assert.deepEqual(
        parsed.messages.map(({ role }) => role),
        parsed.messages.map((_, n) => (n % 2 === 0 ? "user" : "assistant")),
      );
      assert.equal(parsed.messages.length % 2, 1);
      assert.ok(JSON.stringify(parsed).isWellFormed());
    }),
  );
});
