// The person's consent to sampling: requested once per call, shared by concurrent requests.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Sampling } from "../../src/mcp/sampling.ts";
import type { PersonPrompt, Reply, SamplingClient } from "../../src/tool/requests.ts";

const params = {
  messages: [{ role: "user" as const, content: { type: "text" as const, text: "go" } }],
  maxTokens: 10,
};

/** The context of a call; each question waits for `reply` or for its signal. */
function calling(maxRequests = 5) {
  const questions: { reply(said: Reply): void }[] = [];
  let sampled = 0;
  const person: PersonPrompt = {
    ask: (_question, _options, signal) => {
      const { promise, resolve, reject } = Promise.withResolvers<Reply>();
      signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
      questions.push({ reply: resolve });
      return promise;
    },
  };
  const sampler: SamplingClient = {
    sample: async () => {
      sampled += 1;
      return { status: "answered", text: "fine", model: "test", stopReason: "endTurn" };
    },
  };
  const sampling = new Sampling("tracker", { maxRequests, ask: true }, { askPerson: person, sampler });
  return { sampling, questions, sampled: () => sampled };
}

const waiting = () => new AbortController();
/** Resolves when only the person's answer is missing. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("asks once for concurrent requests and applies the answer to the whole call", async () => {
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

test("asks again once for the others when the request that asked is aborted", async () => {
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

test("treats a timeout as a denial for the whole call", async () => {
  const { sampling, questions, sampled } = calling();
  const first = assert.rejects(sampling.answer(params, waiting().signal), /nobody answered in time/);
  await settled();
  questions[0]?.reply({ kind: "silent" });
  await first;
  await assert.rejects(sampling.answer(params, waiting().signal), /nobody answered in time/);
  assert.deepEqual([questions.length, sampled()], [1, 0]);
});
