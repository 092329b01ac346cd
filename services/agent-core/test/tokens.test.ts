import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Message, Part } from "@parley/contracts";
import { charsOf, charsOfTools, estimateTokens, tokenRatio } from "../src/model/tokens.ts";

// design: 004.14
test("estimates a third of the characters, and four tokens more for each message", () => {
  const message = (text: string): Message => ({
    seq: 1,
    role: "user",
    turnId: "t",
    parts: [{ type: "text", text }],
    model: null,
    createdAt: "",
  });
  assert.equal(estimateTokens([message("a".repeat(300)), message("abcd")]), Math.ceil(304 / 3) + 2 * 4);
});

// design: 002.16b
test("corrects an estimate by the reported tokens, at least to 0.3 and at most to 3 times", () => {
  const ratios = [0, 299, 300, 500, 1_000, 3_000, 3_001, 1e9].map((reported) => tokenRatio(reported, 1_000));
  assert.deepEqual(ratios, [0.3, 0.3, 0.3, 0.5, 1, 3, 3, 3]);
  assert.equal(tokenRatio(2, 0), 2);
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
  });
});
