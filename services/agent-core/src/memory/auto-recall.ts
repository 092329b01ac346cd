// Automatic recall: searches memory for a person's message and returns the results as a note to append. Failures never stop a turn.
import type { Logger } from "@parley/chassis";
import type { Memory } from "./memory.ts";
import { recallNote } from "./format-hits.ts";

/** Longest time that a turn waits for automatic recall. */
const timeoutMs = 2_000;
/** Results with a lower score are omitted. */
const leastScore = 0.15;

/** Null if nothing relevant was found. `limit`: maximum number of results. */
export async function recallNotes(
  { memory, log, limit }: { memory: Memory; log: Logger; limit: number },
  turnId: string,
  text: string,
): Promise<string | null> {
  if (text.trim() === "") return null;
  try {
    const { hits } = await memory.search(turnId, text, limit, { timeoutMs });
    const good = hits.filter(({ score }) => score >= leastScore);
    return good.length === 0 ? null : recallNote(good, text);
  } catch (error) {
    log.warn({ err: error, turnId }, "memory not searched: the turn continues without it");
    return null;
  }
}
