// Recall that nobody asked for: what memory holds about what a person has just said, as a note behind it. It never keeps a turn
// from going on.
import type { Logger } from "@parley/chassis";
import type { ParleySettings } from "@parley/contracts";
import type { Memory } from "./memory.ts";
import { recallNote } from "./show.ts";

/** A turn waits no longer than this for what it has not asked for. */
const timeoutMs = 2_000;
/** What shares less with the words that were said is left out. */
const leastScore = 0.15;

export async function recall(
  { memory, settings, log }: { memory: Memory; settings: ParleySettings; log: Logger },
  turnId: string,
  said: string,
): Promise<string | null> {
  const limit = settings.memory.auto_recall;
  if (limit === 0 || said.trim() === "") return null;
  try {
    const { hits } = await memory.search(turnId, said, limit, timeoutMs);
    const good = hits.filter(({ score }) => score >= leastScore);
    return good.length === 0 ? null : recallNote(good, said);
  } catch (error) {
    log.warn({ err: error, turn: turnId }, "memory could not be asked; the turn goes on without it");
    return null;
  }
}
