// Recall of the memory search without embeddings, over conversations in a store of their own, next to the results of
// PostgreSQL's own ranking.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Cleanup, startStoreStack, temporaryFolder } from "@parley/testing";
import { Client } from "pg";
import { findByTsRank, findInMemory, loadConversations, measureRecall, type Recall } from "../memory/ask.ts";
import type { Sample } from "../memory/locomo.ts";
import type { Row } from "../row.ts";

/** Recall that LoCoMo's own questions must reach. */
const least = { anyHit5: 0.62, anyHit10: 0.7 };

export async function memory(what: string, samples: readonly Sample[]): Promise<Row[]> {
  await using cleanup = new Cleanup();
  const config = join(await temporaryFolder(cleanup), "parley.toml");
  await writeFile(config, "[memory]\nsessions = true\n");
  const stack = await startStoreStack(cleanup, { storeEnv: { PARLEY_CONFIG: config } });
  const loaded = await loadConversations(stack.postgres.ownerUrl, samples);
  const core = await stack.bus("agent-core");
  // The first question builds the index, so it is not counted.
  for (const one of loaded.slice(0, 1)) await findInMemory(core, one)("?");
  const ours = await measureRecall(loaded, (one) => findInMemory(core, one));
  const client = new Client({ connectionString: stack.postgres.ownerUrl });
  await client.connect();
  cleanup.add(() => client.end());
  const naive = await measureRecall(loaded, (one) => findByTsRank(client, one));
  return [
    {
      what: `memory, ${ours.questions.toLocaleString("en")} questions of ${what}`,
      measured: shown(ours),
      target: `≥ ${percent(least.anyHit5)} / ${percent(least.anyHit10)}`,
      isMet: ours.anyHit5 >= least.anyHit5 && ours.anyHit10 >= least.anyHit10,
    },
    { what: "  the same by ts_rank_cd", measured: shown(naive), target: "", isMet: undefined },
  ];
}

function shown({ anyHit5, anyHit10, session5, medianMs }: Recall): string {
  return `any-hit@5 ${percent(anyHit5)}, @10 ${percent(anyHit10)}; session@5 ${percent(session5)}; ${medianMs.toFixed(1)} ms a query`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
