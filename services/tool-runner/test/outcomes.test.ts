// Truncation of results to the caller's limit.
import assert from "node:assert/strict";
import { test } from "node:test";
import { containsUntrustedContent, untrustedMarker } from "@parley/contracts";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { resultOf } from "../src/calls/outcomes.ts";

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

test("property: keeps an existing warning in a truncated result, adds none, and fits the limit", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "漢", "\n", '"'), maxLength: 3_000 });
  const warned = fc.tuple(text, fc.constantFrom("", untrustedMarker), text);
  fc.assert(
    fc.property(warned, fc.integer({ min: 1_000, max: 4_000 }), (parts, maxResultBytes) => {
      const content = parts.join("");
      const result = resultOf({ ...asked, maxResultBytes }, { output: { content, isError: false } });
      assert.equal(containsUntrustedContent(result.content), containsUntrustedContent(content));
      assert.ok(Buffer.byteLength(JSON.stringify(result)) <= maxResultBytes);
    }),
    { numRuns: propertyRuns(500) },
  );
});

// design: 002.7
test("shows exactly the allowed characters of any script, and names the tool and both lengths", () => {
  for (const character of ["a", "漢"]) {
    const content = character.repeat(50_000);
    const request = { ...asked, tool: "mcp__docs__page", maxResultBytes: 240 * 1024, maxResultCharacters: 40_000 };
    const { content: shown } = resultOf(request, { output: { content, isError: false } });
    assert.equal(shown.split(character).length - 1, 40_000 + (character === "a" ? 4 : 0));
    assert.match(shown, /\n\[Showing 40000 of 50000 characters from mcp__docs__page; the others are missing here\]\n/);
    const fitting = resultOf(request, { output: { content: character.repeat(40_000), isError: false } });
    assert.equal(fitting.content, character.repeat(40_000));
  }
});

test("puts a warning from the removed middle on top of the rest", () => {
  const content = `${"a".repeat(50_000)}\n${untrustedMarker}\n${"b".repeat(50_000)}`;
  const { content: left } = resultOf({ ...asked, maxResultBytes: 200_000 }, { output: { content, isError: false } });
  assert.ok(left.startsWith(`${untrustedMarker}\na`));
  assert.ok(left.endsWith("b") && left.length <= 60_000);
});
