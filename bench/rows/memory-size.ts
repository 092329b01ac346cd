// Search time in a large memory of one person: ten thousand chunks, by full text alone, and with vectors as well.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { store } from "@parley/contracts";
import { Cleanup, startStoreStack, temporaryFolder } from "@parley/testing";
import { Client } from "pg";
import { percentile } from "../measure.ts";
import { loadConversations } from "../memory/ask.ts";
import type { Sample } from "../memory/locomo.ts";
import { questionSet } from "../memory/question-set.ts";
import type { Row } from "../row.ts";

const pieces = 10_000;
const questions = 200;
/** Dimensions of a common small embedding model. */
const dimensions = 384;
const model = "bench";
/** Milliseconds that are not noticeable next to a model call. */
const wanted = { words: 50, vectors: 150 };

export async function memorySize(): Promise<Row[]> {
  await using cleanup = new Cleanup();
  const config = join(await temporaryFolder(cleanup), "parley.toml");
  await writeFile(config, "[memory]\nsessions = true\n");
  const stack = await startStoreStack(cleanup, { storeEnv: { PARLEY_CONFIG: config } });
  const sample = oneAcquaintance();
  const [loaded] = await loadConversations(stack.postgres.ownerUrl, [sample]);
  const turnId = loaded?.askingTurn ?? "";
  const core = await stack.bus("agent-core");
  const asked = sample.questions.slice(0, questions).map(({ text }) => text);
  const ask = async (query: string, vector?: { model: string; values: string }) => {
    const begin = performance.now();
    await core.request(store.memorySearch, { turnId, query, limit: 10, ...(vector === undefined ? {} : { vector }) });
    return performance.now() - begin;
  };
  // The first question builds the index, so it is not counted.
  await core.request(store.memorySearch, { turnId, query: "?", limit: 1 }, { timeoutMs: 120_000 });
  const words: number[] = [];
  for (const query of asked) words.push(await ask(query));

  const client = new Client({ connectionString: stack.postgres.ownerUrl });
  await client.connect();
  cleanup.add(() => client.end());
  const { rowCount } = await client.query(
    `INSERT INTO parley.memory_vectors (model, sha256, packed)
     SELECT $1, sha256, (SELECT string_agg(float4send((random() - 0.5)::real), ''::bytea) FROM generate_series(1, $2::int + 0 * length(sha256)))
     FROM (SELECT DISTINCT sha256 FROM parley.memory_chunks) AS texts`,
    [model, dimensions],
  );
  const vector = Float32Array.from({ length: dimensions }, (_, index) => Math.sin(index));
  const values = Buffer.from(vector.buffer).toString("base64");
  const both: number[] = [];
  for (const query of asked.slice(0, 50)) both.push(await ask(query, { model, values }));
  return [
    row(`memory, a question of ${pieces.toLocaleString("en")} pieces, by words`, words, wanted.words),
    row(`  the same with ${(rowCount ?? 0).toLocaleString("en")} vectors of ${dimensions}`, both, wanted.vectors),
  ];
}

function row(what: string, durations: number[], wantedMs: number): Row {
  const p50 = percentile(durations, 0.5);
  return {
    what,
    measured: `p50 ${p50.toFixed(1)} ms, p95 ${percentile(durations, 0.95).toFixed(1)} ms`,
    target: `p50 ≤ ${wantedMs} ms`,
    isMet: p50 <= wantedMs,
  };
}

/** More samples than the row needs. */
const acquaintances = 60;

/** All samples as the sessions of one person; no two chunks are equal. */
function oneAcquaintance(): Sample {
  const samples = questionSet(acquaintances);
  let turns = 0;
  const sessions = samples
    .flatMap((sample) => sample.sessions)
    .map((session, index) => ({
      ...session,
      number: index + 1,
      turns: session.turns.slice(0, pieces - turns).map((turn) => {
        turns += 1;
        return { ...turn, id: String(turns), text: `${turn.text} ${turns}` };
      }),
    }))
    .filter((session) => session.turns.length > 0);
  if (turns < pieces) throw new Error(`only ${turns} pieces`);
  return { id: "one", sessions, questions: samples.flatMap((sample) => sample.questions) };
}
