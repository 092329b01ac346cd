// Recall of the memory search: generated questions against the real store, compared with PostgreSQL's own ranking. Also tests the
// parser of LoCoMo's format, from which the bench can load a file.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Bus } from "@parley/bus";
import { store } from "@parley/contracts";
import { Cleanup, startStoreStack, temporaryFolder } from "@parley/testing";
import { Client } from "pg";
import { findByTsRank, findInMemory, loadConversations, measureRecall } from "../../bench/memory/ask.ts";
import { parseLocomo } from "../../bench/memory/locomo.ts";
import { questionSet } from "../../bench/memory/question-set.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

async function stackWithSessions() {
  const config = join(await temporaryFolder(cleanup), "parley.toml");
  await writeFile(config, "[memory]\nsessions = true\n");
  return startStoreStack(cleanup, { storeEnv: { PARLEY_CONFIG: config } });
}

/** The first search indexes all conversations, which takes longer than a request may. */
async function indexed(core: Bus, [first]: readonly { askingTurn: string }[]): Promise<void> {
  assert.ok(first !== undefined);
  const search = { turnId: first.askingTurn, query: "anything", limit: 1 };
  await core.request(store.memorySearch, search, { timeoutMs: 60_000, attemptMs: 60_000 });
}

test("finds more answering turns than PostgreSQL's own ranking", async (t) => {
  const stack = await stackWithSessions();
  const loaded = await loadConversations(stack.postgres.ownerUrl, questionSet(10));
  const core = await stack.bus("agent-core");
  await indexed(core, loaded);
  const memory = await measureRecall(loaded, (one) => findInMemory(core, one));
  const client = new Client({ connectionString: stack.postgres.ownerUrl });
  await client.connect();
  cleanup.add(() => client.end());
  const naive = await measureRecall(loaded, (one) => findByTsRank(client, one));
  t.diagnostic(JSON.stringify({ memory, naive }));
  assert.ok(memory.questions >= 300, `${memory.questions} questions`);
  assert.equal(naive.questions, memory.questions);
  assert.ok(memory.anyHit5 >= 0.62, `any-hit@5 is ${memory.anyHit5}`);
  assert.ok(memory.anyHit10 >= 0.7, `any-hit@10 is ${memory.anyHit10}`);
  assert.ok(memory.anyHit5 > naive.anyHit5 + 0.02, `${memory.anyHit5} is not more than ${naive.anyHit5}`);
  assert.ok(memory.anyHit10 > naive.anyHit10, `${memory.anyHit10} is not more than ${naive.anyHit10}`);
});

test("parses LoCoMo's format: sessions in order, picture descriptions, answerable questions", () => {
  const samples = parseLocomo([
    {
      sample_id: "conv-1",
      conversation: {
        speaker_a: "Ann",
        speaker_b: "Bo",
        session_10_date_time: "1:56 pm on 8 May, 2023",
        session_10: [{ speaker: "Bo", dia_id: "D10:1", text: "Look!", blip_caption: "a red boat" }],
        session_2_date_time: "9:00 am on 1 March, 2023",
        session_2: [{ speaker: "Ann", dia_id: "D2:1", text: "I moved." }],
        session_3_date_time: "9:00 am on 2 March, 2023",
      },
      qa: [
        { question: "Who moved?", answer: "Ann", evidence: ["D2:1"], category: 1 },
        { question: "Two at once?", answer: 2, evidence: ["D2:1; D10:1"], category: 2 },
        { question: "Never said?", adversarial_answer: "x", evidence: ["D2:1"], category: 5 },
        { question: "No evidence?", answer: "x", evidence: [], category: 3 },
        { question: "Evidence that is not there?", answer: "x", evidence: ["D77:1"], category: 3 },
      ],
    },
  ]);
  assert.deepEqual(samples, [
    {
      id: "conv-1",
      sessions: [
        { number: 2, at: new Date("2023-03-01"), turns: [{ id: "D2:1", speaker: "Ann", text: "I moved." }] },
        {
          number: 10,
          at: new Date("2023-05-08"),
          turns: [{ id: "D10:1", speaker: "Bo", text: "Look! [image: a red boat]" }],
        },
      ],
      questions: [
        { text: "Who moved?", evidence: ["D2:1"] },
        { text: "Two at once?", evidence: ["D2:1", "D10:1"] },
      ],
    },
  ]);
});

test("parses the irregular entries of LoCoMo's file without losing answerable questions", () => {
  const said = (...ids: string[]) =>
    ids.map((id) => ({ speaker: "Ann", dia_id: id, text: id, img_url: ["x"], "re-download": true }));
  const evidence = (entries: unknown[], more: object = {}) => ({
    question: entries.join("|"),
    answer: 2022,
    evidence: entries,
    category: 2,
    ...more,
  });
  const conversation = {
    speaker_a: "Ann",
    speaker_b: "Bo",
    session_8_date_time: "12:05 am on 1 January, 2024",
    session_8: said("D8:6"),
    session_9_date_time: "no date at all",
    session_9: said("D9:1", "D9:17"),
    session_11_date_time: "8:18 pm on 6 July, 2023",
    session_11: said("D11:26"),
    session_30_date_time: "8:18 pm on 6 July, 2023",
    session_30: said("D30:5"),
    session_35_date_time: "8:18 pm on 7 July, 2023",
  };
  const qa = [
    evidence(["D8:6; D9:17"]),
    evidence(["D9:1 D8:6 D9:17", "D9:1"]),
    evidence(["D:11:26"]),
    evidence(["D30:05"]),
    evidence(["D", "D9:1"]),
    evidence(["D"]),
    evidence(["D10:19"]),
    evidence(["D9:1"], { category: 5, answer: undefined, adversarial_answer: "no" }),
    { question: "no evidence at all", answer: "yes", category: 3 },
  ];
  const [sample] = parseLocomo([
    { sample_id: "conv-50", conversation, qa, event_summary: {}, observation: {}, session_summary: {} },
  ]);
  assert.deepEqual(
    sample?.questions.map((question) => question.evidence),
    [["D8:6", "D9:17"], ["D9:1", "D8:6", "D9:17"], ["D11:26"], ["D30:5"], ["D9:1"]],
  );
  assert.deepEqual(
    sample.sessions.map(({ number, at }) => [number, at.toISOString().slice(0, 10)]),
    [
      [8, "2024-01-01"],
      [9, "2023-01-09"],
      [11, "2023-07-06"],
      [30, "2023-07-06"],
    ],
    "a session without turns is none, and one without a date has a day of its own",
  );
});
