import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isUnderWarning, underWarning, untrustedMark } from "../src/index.ts";

const end = "[end of untrusted lines]";

test("underWarning encloses each run of untrusted lines, and blank lines end no run", () => {
  const verdicts = [false, null, true, null, true, null, false, true];
  const lines = verdicts.map((untrusted, index) => ({ shown: String(index), untrusted }));
  const shown = ["0", "1", untrustedMark, "2", "3", "4", "5", end, "6", untrustedMark, "7", end];
  assert.deepEqual(underWarning(lines), shown);
});

test("property: every line is shown once and in order, and only untrusted ones under a warning", () => {
  const line = fc.option(fc.boolean(), { nil: null });
  fc.assert(
    fc.property(fc.array(line, { maxLength: 30 }), (verdicts) => {
      const shown = underWarning(verdicts.map((untrusted, index) => ({ shown: String(index), untrusted })));
      let warned = false;
      let next = 0;
      for (const text of shown) {
        if (text === untrustedMark || text === end) {
          assert.notEqual(warned, text === untrustedMark);
          warned = text === untrustedMark;
          continue;
        }
        assert.equal(text, String(next));
        const untrusted = verdicts[next];
        if (untrusted !== null) assert.equal(warned, untrusted);
        next += 1;
      }
      assert.deepEqual([next, warned], [verdicts.length, false]);
      assert.equal(isUnderWarning(shown.join("\n")), verdicts.includes(true));
    }),
  );
});
