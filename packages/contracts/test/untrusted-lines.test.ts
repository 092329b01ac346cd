import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { containsUntrustedContent, markUntrusted, untrustedMarker } from "../src/index.ts";

const end = "[end of untrusted lines]";

test("underWarning encloses each run of untrusted lines, and blank lines end no run", () => {
  const verdicts = [false, null, true, null, true, null, false, true];
  const lines = verdicts.map((untrusted, index) => ({ shown: String(index), untrusted }));
  const shown = ["0", "1", untrustedMarker, "2", "3", "4", "5", end, "6", untrustedMarker, "7", end];
  assert.deepEqual(markUntrusted(lines), shown);
});

test("property: every line is shown once and in order, and only untrusted ones under a warning", () => {
  const line = fc.option(fc.boolean(), { nil: null });
  fc.assert(
    fc.property(fc.array(line, { maxLength: 30 }), (verdicts) => {
      const shown = markUntrusted(verdicts.map((untrusted, index) => ({ shown: String(index), untrusted })));
      let warned = false;
      let next = 0;
      for (const text of shown) {
        if (text === untrustedMarker || text === end) {
          assert.notEqual(warned, text === untrustedMarker);
          warned = text === untrustedMarker;
          continue;
        }
        assert.equal(text, String(next));
        const untrusted = verdicts[next];
        if (untrusted !== null) assert.equal(warned, untrusted);
        next += 1;
      }
      assert.deepEqual([next, warned], [verdicts.length, false]);
      assert.equal(containsUntrustedContent(shown.join("\n")), verdicts.includes(true));
    }),
  );
});
