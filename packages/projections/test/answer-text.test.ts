// A streamed answer is append-only and ends with the committed answer, regardless of lost deltas and retries.
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

test("shows exactly the answer when no delta is lost", () => {
  fc.assert(fc.property(words, (texts) => assert.equal(show(inOrder(texts), texts.join("")), texts.join(""))));
});

test("ends with the whole answer when deltas are lost", () => {
  fc.assert(
    fc.property(words, fc.infiniteStream(fc.boolean()), (texts, kept) => {
      const some = inOrder(texts).filter(() => kept.next().value);
      const shown = show(some, texts.join(""));
      assert.ok(bare(shown).endsWith(bare(texts.join(""))), shown);
    }),
  );
});

test("shows a retried call once when its text is the same", () => {
  fc.assert(
    fc.property(words, fc.nat({ max: 12 }), (texts, cut) => {
      const deltas = [...inOrder(texts.slice(0, cut)), ...inOrder(texts, 1, 2)];
      assert.equal(show(deltas, texts.join("")), texts.join(""));
    }),
  );
});

test("shows a retried call from its beginning when its text differs", () => {
  const deltas = [...inOrder(["The sky ", "is gre"]), ...inOrder(["Blue", " it is"], 1, 2)];
  assert.equal(show(deltas, "Blue it is"), "The sky is gre\n\nBlue it is");
});

test("drops late deltas of an earlier attempt", () => {
  const deltas = [...inOrder(["new"], 1, 2), ...inOrder(["old"], 1, 1), ...inOrder(["er"], 1, 2)];
  assert.equal(show(deltas, "newer"), "newer");
});

test("separates the texts of steps and does not repeat the last one", () => {
  const deltas = [...inOrder(["Let me look."], 1), ...inOrder(["It is ", "four."], 3)];
  assert.equal(show(deltas, "It is four."), "Let me look.\n\nIt is four.");
  assert.equal(show(deltas, "Let me look.\n\nIt is four."), "Let me look.\n\nIt is four.");
  assert.equal(show(deltas, "Stopped: a limit."), "Let me look.\n\nIt is four.\n\nStopped: a limit.");
});

// design: interaction.12
test("does not repeat parts that the answer joins by blank lines", () => {
  assert.equal(show(inOrder(["One.", "Two."]), "One.\n\nTwo."), "One.Two.");
});

test("continues the shown text when another leader claims the turn", () => {
  const text = new AnswerText();
  const shown = [text.delta(1, 2, "Hello w")];
  text.restart();
  shown.push(text.delta(1, 1, "Hello"), text.delta(1, 1, " world"), text.finish("Hello world"));
  assert.equal(shown.join(""), "Hello world");
});
