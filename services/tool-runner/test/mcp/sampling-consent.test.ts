// Whether the person of a call lets its server ask a model: asked once for all of the call, whoever waits for the answer.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Sampling } from "../../src/mcp/sampling/sampling.ts";
import type { Person, Reply } from "../../src/serving/person.ts";
import type { Sampler } from "../../src/serving/sampler.ts";

const params = {
  messages: [{ role: "user" as const, content: { type: "text" as const, text: "go" } }],
  maxTokens: 10,
};

/** A call of which people are asked; each question waits for `reply` or for the end of its signal. */
function calling(maxRequests = 5) {
  const questions: { reply(said: Reply): void }[] = [];
  let sampled = 0;
  const person: Person = {
    ask: (_question, _options, signal) => {
      const { promise, resolve, reject } = Promise.withResolvers<Reply>();
      signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
      questions.push({ reply: resolve });
      return promise;
    },
  };
  const sampler: Sampler = {
    sample: async () => {
      sampled += 1;
      return { status: "answered", text: "fine", model: "test", stopReason: "endTurn" };
    },
  };
  const sampling = new Sampling("tracker", { maxRequests, ask: true }, { person, sampler });
  return { sampling, questions, sampled: () => sampled };
}

const waiting = () => new AbortController();
/** Until everything that can go on without a person has gone on. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("requests that come at once are one question, and one answer holds for all of them and for those that follow", async () => {
  for (const [word, agreed] of [
    ["yes", true],
    ["no", false],
  ] as const) {
    const { sampling, questions, sampled } = calling();
    const requests = [1, 2, 3].map(() => sampling.answer(params, waiting().signal));
    const ends = Promise.allSettled(requests);
    await settled();
    assert.equal(questions.length, 1);
    questions[0]?.reply({ kind: "said", text: word });
    assert.ok((await ends).every(({ status }) => (status === "fulfilled") === agreed));
    const [later] = await Promise.allSettled([sampling.answer(params, waiting().signal)]);
    assert.equal(later.status === "fulfilled", agreed);
    assert.deepEqual([questions.length, sampled()], [1, agreed ? 4 : 0]);
  }
});

test("a request that the server takes back takes its question with it, and none of the others: they ask anew, once", async () => {
  const { sampling, questions, sampled } = calling();
  const first = waiting();
  const taken = assert.rejects(sampling.answer(params, first.signal), /taken back/);
  const others = Promise.all([1, 2].map(() => sampling.answer(params, waiting().signal)));
  await settled();
  assert.equal(questions.length, 1);
  first.abort(new Error("taken back"));
  await taken;
  await settled();
  assert.equal(questions.length, 2);
  questions[1]?.reply({ kind: "said", text: "yes" });
  assert.equal((await others).length, 2);
  assert.deepEqual([questions.length, sampled()], [2, 2]);
});

test("nobody's answer in time is a no for all of the call, and is not asked for again", async () => {
  const { sampling, questions, sampled } = calling();
  const first = assert.rejects(sampling.answer(params, waiting().signal), /nobody answered in time/);
  await settled();
  questions[0]?.reply({ kind: "silent" });
  await first;
  await assert.rejects(sampling.answer(params, waiting().signal), /nobody answered in time/);
  assert.deepEqual([questions.length, sampled()], [1, 0]);
});
