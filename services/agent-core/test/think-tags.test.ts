import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import type { ModelDelta } from "../src/model/provider.ts";
import { splitOrphan, ThinkTags } from "../src/model/think-tags.ts";

function read(pieces: readonly string[]): { text: string; reasoning: string } {
  const tags = new ThinkTags();
  const deltas: ModelDelta[] = [...pieces.flatMap((piece) => tags.push(piece)), ...tags.end()];
  const joined = (type: ModelDelta["type"]) => deltas.map((delta) => (delta.type === type ? delta.text : "")).join("");
  return { text: joined("text"), reasoning: joined("reasoning") };
}

describe("reasoning in the text", () => {
  // design: 004.5
  test("is extracted at the start, also repeatedly and with the longer tag", () => {
    assert.deepEqual(read(["\n<think>\nhm\n</think>\n\nso"]), { text: "so", reasoning: "hm\n" });
    assert.deepEqual(read(["<think>a</think>\n<thinking>b</thinking> so"]), { text: "so", reasoning: "ab" });
  });

  test("is everything when it is never closed", () => {
    assert.deepEqual(read(["<think>hm </thi"]), { text: "", reasoning: "hm </thi" });
  });

  test("is plain text after the answer has started", () => {
    const said = "The tag <think>x</think> marks thinking.";
    assert.deepEqual(read([said]), { text: said, reasoning: "" });
  });

  test("keeps an answer that starts like a tag", () => {
    for (const said of ["<", "<thin", "<thinner>", " <p>", "", "  "]) {
      assert.deepEqual(read([said]), { text: said, reasoning: "" });
    }
  });

  test("is the same however the text is split", () => {
    const texts = fc.array(fc.constantFrom("<think>", "</think>", "<thinking>", "</thinking>", "<th", "a", "\n", " "));
    fc.assert(
      fc.property(texts, fc.array(fc.integer({ min: 1, max: 5 })), (words, sizes) => {
        const whole = words.join("");
        const pieces: string[] = [];
        let rest = whole;
        for (const size of sizes) {
          pieces.push(rest.slice(0, size));
          rest = rest.slice(size);
        }
        pieces.push(rest);
        assert.deepEqual(normal(read(pieces)), normal(read([whole])));
      }),
      { numRuns: propertyRuns(2_000) },
    );
  });
});

/** A line break directly after a tag belongs to the tag if it is in the same chunk. */
function normal({ text, reasoning }: { text: string; reasoning: string }) {
  return { text: text.trim(), reasoning: reasoning.replaceAll(/\s/g, "") };
}

describe("a closing tag without an opening one", () => {
  test("counts when it is alone on a line", () => {
    assert.deepEqual(splitOrphan("hm\n</think>\n\nso"), { reasoning: "hm", text: "so" });
    assert.equal(splitOrphan("It ends with </think> as a rule."), undefined);
    assert.equal(splitOrphan("`<think>` begins it,\n</think>\nends it."), undefined);
  });
});
