// The final size limit of a result.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { truncateContent, maxContentCharacters } from "../src/fit-content.ts";

// design: 002.27
test("property: every result fits, is well formed, and is unchanged when it already fits", () => {
  const unit = fc.constantFrom("a", '"', "\\", "\u0001", "\u0000", "\ud83d", "é", "🙂", "\n");
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 3_000 }), fc.integer({ min: 100, max: 20_000 }), (content, maxBytes) => {
      const fitted = truncateContent(content, maxBytes);
      assert.ok(Buffer.byteLength(JSON.stringify(fitted)) <= maxBytes);
      assert.ok(fitted.isWellFormed() && !fitted.includes("\0") && fitted !== "");
      const clean = content.toWellFormed().replaceAll("\0", "\u2400");
      if (clean !== "" && Buffer.byteLength(JSON.stringify(clean)) <= maxBytes) assert.equal(fitted, clean);
    }),
    { numRuns: propertyRuns(1_000) },
  );
});

test("a result of ten million characters keeps its beginning and its end", () => {
  const fitted = truncateContent(`begin${"x".repeat(10_000_000)}end`, 1_000_000);
  assert.ok(fitted.length <= maxContentCharacters);
  assert.match(fitted, /^begin.*\n\[cut: \d+ of 10000008 characters are missing here\]\n.*end$/s);
});
