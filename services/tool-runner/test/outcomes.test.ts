// What is left of a result that has too little room.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isUnderWarning, untrustedMark } from "@parley/contracts";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { resultOf } from "../src/serving/outcomes.ts";

const asked = {
  epoch: 1,
  sessionId: "s",
  turnId: "t",
  n: 2,
  callId: "c",
  tool: "read",
  class: "pure" as const,
  input: "{}",
  timeoutMs: 5_000,
};

test("property: a cut result keeps the warning that it had, gets none that it had not, and fits", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "漢", "\n", '"'), maxLength: 3_000 });
  const warned = fc.tuple(text, fc.constantFrom("", untrustedMark), text);
  fc.assert(
    fc.property(warned, fc.integer({ min: 1_000, max: 4_000 }), (parts, maxResultBytes) => {
      const content = parts.join("");
      const result = resultOf({ ...asked, maxResultBytes }, { content, isError: false });
      assert.equal(isUnderWarning(result.content), isUnderWarning(content));
      assert.ok(Buffer.byteLength(JSON.stringify(result)) <= maxResultBytes);
    }),
    { numRuns: propertyRuns(500) },
  );
});

test("a warning in the missing middle stands above what is left, also of the longest result", () => {
  const content = `${"a".repeat(50_000)}\n${untrustedMark}\n${"b".repeat(50_000)}`;
  const { content: left } = resultOf({ ...asked, maxResultBytes: 200_000 }, { content, isError: false });
  assert.ok(left.startsWith(`${untrustedMark}\na`));
  assert.ok(left.endsWith("b") && left.length <= 60_000);
});
