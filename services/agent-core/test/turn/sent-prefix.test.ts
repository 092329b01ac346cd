import assert from "node:assert/strict";
import { test } from "node:test";
import type { Part } from "@parley/contracts";
import fc from "fast-check";
import type { PromptMessage } from "../../src/model/provider.ts";
import { fingerprints, firstDifference } from "../../src/session/prefix-check.ts";

const part = fc.oneof(
  fc.string({ maxLength: 3 }).map((text): Part => ({ type: "text", text })),
  fc.string({ maxLength: 3 }).map((text): Part => ({ type: "reasoning", text, signature: text })),
);
const prompt: fc.Arbitrary<PromptMessage[]> = fc.array(
  fc.record({
    role: fc.constantFrom("user" as const, "assistant" as const),
    parts: fc.array(part, { minLength: 1, maxLength: 3 }),
  }),
  { minLength: 1, maxLength: 6 },
);

function copy(messages: PromptMessage[]): PromptMessage[] {
  return JSON.parse(JSON.stringify(messages)) as PromptMessage[];
}

test("accepts a prompt that only grew, also inside its last message", () => {
  fc.assert(
    fc.property(prompt, prompt, part, (before, more, added) => {
      const last = before.at(-1);
      const grown = [
        ...before.slice(0, -1),
        ...(last === undefined ? [] : [{ ...last, parts: [...last.parts, added] }]),
        ...more,
      ];
      assert.equal(firstDifference(fingerprints("p", before), fingerprints("p", copy(grown))), undefined);
    }),
  );
});

test("finds the first changed, missing or moved block and a different system prompt", () => {
  fc.assert(
    fc.property(prompt, fc.nat(), (before, at) => {
      const sent = fingerprints("p", before);
      const blocks = before.flatMap(({ parts }) => parts).length;
      const index = at % blocks;
      const next = copy(before);
      const changed = next.flatMap(({ parts }) => parts)[index];
      if (changed?.type === "text" || changed?.type === "reasoning") changed.text += "!";
      assert.equal(firstDifference(sent, fingerprints("p", next)), index + 1);
      assert.equal(firstDifference(sent, fingerprints("other", before)), 0);
      assert.equal(firstDifference(sent, fingerprints("p", before).slice(0, -1)), blocks);
    }),
  );
});

test("treats equal text in another role as a different block", () => {
  const as = (role: PromptMessage["role"]) => fingerprints("p", [{ role, parts: [{ type: "text", text: "x" }] }]);
  assert.equal(firstDifference(as("user"), as("assistant")), 1);
  assert.equal(firstDifference([], as("user")), undefined);
});
