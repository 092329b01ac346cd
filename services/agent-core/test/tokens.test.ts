import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { noUsage, type Part } from "@parley/contracts";
import { charsOf, charsOfMessages, charsOfTools, estimatePrompt } from "../src/model/tokens.ts";

const sizes = { newChars: 0, messageChars: 0, systemChars: 0, toolChars: 0 };

describe("an estimate of the next prompt", () => {
  // design: 000.27, 002.16b
  test("adds the last reported usage, its answer and a third of the new characters", () => {
    const lastUsage = { inputTokens: 100, cacheReadTokens: 5_000, cacheWriteTokens: 900, outputTokens: 40 };
    const estimate = estimatePrompt({ ...sizes, lastUsage, newChars: 301, systemChars: 9_999, toolChars: 9_999 });
    assert.equal(estimate, 100 + 5_000 + 900 + 40 + 101);
  });

  // design: 004.14
  test("is a third of all characters, with tools and system prompt, without reported usage", () => {
    const all = { newChars: 5, messageChars: 300, systemChars: 30, toolChars: 60 };
    assert.equal(estimatePrompt({ ...all, lastUsage: null }), 130);
    assert.equal(estimatePrompt({ ...all, lastUsage: noUsage }), 130);
  });
});

describe("the size of parts", () => {
  test("is their text, including calls and results, and a constant for an image of any size", () => {
    const image = (data: string): Part => ({ type: "binary", mediaType: "image/png", data });
    assert.equal(charsOf([image("a")]), charsOf([image("a".repeat(1_000_000))]));
    assert.equal(
      charsOf([
        { type: "text", text: "12345" },
        { type: "tool_call", id: "1", name: "ls", input: "{}" },
        { type: "tool_result", id: "1", name: "ls", content: "abc", isError: false },
        { type: "finish", reason: "end_turn", at: "" },
      ]),
      5 + 4 + 3,
    );
  });

  test("of a document grows with its pages", () => {
    const pdf = (bytes: number): Part => ({
      type: "binary",
      mediaType: "application/pdf",
      data: "a".repeat((bytes * 4) / 3),
    });
    assert.ok(charsOf([pdf(600_000)]) > 4 * charsOf([pdf(60_000)]));
  });

  test("of tools is the size of the fields that the provider receives", () => {
    const tool = { name: "now", description: "The time.", inputSchema: { type: "object" } };
    assert.equal(charsOfTools([tool, tool]), 2 * (3 + 9 + 17));
    assert.equal(charsOfMessages([{ role: "user", parts: [{ type: "text", text: "abc" }] }]), 3);
  });
});
