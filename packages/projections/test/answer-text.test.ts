// A streamed answer only ever grows, and at its end the reader has the committed answer, whatever was lost or tried again.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { AnswerText } from "../src/answer-text.ts";

interface Delta {
  step: number;
  attempt: number;
  text: string;
}

function show(deltas: readonly Delta[], answer: string): string {
  const text = new AnswerText();
  return (
    deltas.map(({ step, attempt, text: piece }) => text.delta(step, attempt, piece)).join("") + text.finish(answer)
  );
}

const words = fc.array(fc.string({ minLength: 1, maxLength: 8 }), { maxLength: 12 });
const inOrder = (texts: readonly string[], step = 1, attempt = 1) => texts.map((text) => ({ step, attempt, text }));
const bare = (text: string) => text.replace(/\s/g, "");

test("nothing lost: exactly the answer", () => {
  fc.assert(fc.property(words, (texts) => assert.equal(show(inOrder(texts), texts.join("")), texts.join(""))));
});

test("whatever is lost, the whole answer is what was shown last", () => {
  fc.assert(
    fc.property(words, fc.infiniteStream(fc.boolean()), (texts, kept) => {
      const some = inOrder(texts).filter(() => kept.next().value);
      const shown = show(some, texts.join(""));
      assert.ok(bare(shown).endsWith(bare(texts.join(""))), shown);
    }),
  );
});

test("a call that is tried again and says the same is shown once", () => {
  fc.assert(
    fc.property(words, fc.nat({ max: 12 }), (texts, cut) => {
      const deltas = [...inOrder(texts.slice(0, cut)), ...inOrder(texts, 1, 2)];
      assert.equal(show(deltas, texts.join("")), texts.join(""));
    }),
  );
});

test("a call that says something else when it is tried again is shown from its beginning", () => {
  const deltas = [...inOrder(["The sky ", "is gre"]), ...inOrder(["Blue", " it is"], 1, 2)];
  assert.equal(show(deltas, "Blue it is"), "The sky is gre\n\nBlue it is");
});

test("what is late from an earlier try is left out", () => {
  const deltas = [...inOrder(["new"], 1, 2), ...inOrder(["old"], 1, 1), ...inOrder(["er"], 1, 2)];
  assert.equal(show(deltas, "newer"), "newer");
});

test("the texts of several steps are apart, and the last one is not said twice", () => {
  const deltas = [...inOrder(["Let me look."], 1), ...inOrder(["It is ", "four."], 3)];
  assert.equal(show(deltas, "It is four."), "Let me look.\n\nIt is four.");
  assert.equal(show(deltas, "Let me look.\n\nIt is four."), "Let me look.\n\nIt is four.");
  assert.equal(show(deltas, "Stopped: a limit."), "Let me look.\n\nIt is four.\n\nStopped: a limit.");
});

// design: interaction.12
test("parts that the answer joins by blank lines are not said twice", () => {
  assert.equal(show(inOrder(["One.", "Two."]), "One.\n\nTwo."), "One.Two.");
});

test("a turn that another leader takes up goes on where the reader is", () => {
  const text = new AnswerText();
  const shown = [text.delta(1, 2, "Hello w")];
  text.restart();
  shown.push(text.delta(1, 1, "Hello"), text.delta(1, 1, " world"), text.finish("Hello world"));
  assert.equal(shown.join(""), "Hello world");
});
