// A running turn's conversation made shorter before its next model call, where that is due; and what follows from it: a new
// prefix, the cost, the word to those who watch, the hooks of a session that begins anew.
import { store } from "@parley/contracts";
import { compact, isOutdated } from "./compactor.ts";
import { showsTaint } from "./trust.ts";
import type { Turn } from "./turn.ts";

/** `overflow`: it must become shorter; `check`: if it is due. True when it has. */
export async function makeRoom(turn: Turn, cause: "check" | "overflow", signal: AbortSignal): Promise<boolean> {
  const { claimed, deps } = turn;
  const compacted = await compact(
    { ...deps, settings: deps.settings.compaction },
    {
      sessionId: claimed.sessionId,
      turnId: claimed.turnId,
      running: true,
      view: turn.view,
      tainted: () => turn.tainted || showsTaint(turn.view.record, turn.visible.all, turn.toolbox),
      pending: turn.pending,
      prefix: turn.prefix,
      policy: turn.policy,
      provider: turn.model,
      headings: turn.headings,
      place: turn.place,
      cause,
      say: turn.say.bind(turn),
    },
    signal,
  ).catch((error: unknown) => {
    if (isOutdated(error)) return "outdated" as const;
    throw error;
  });
  if (compacted === "outdated") return takeNewerView(turn);
  if (compacted === null) return false;
  if (compacted.outcome === "flush_first") {
    await turn.append([compacted.words]);
    return false;
  }
  turn.shorten(compacted.record);
  deps.budgets.spend(claimed, compacted.costMicros);
  if (compacted.notice !== null) turn.say({ type: "notice", turnId: claimed.turnId, text: compacted.notice });
  await turn.renewPrefix();
  const started = await deps.runHooks("SessionStart", turn.place, { source: "compact" }, signal);
  if (started.contexts.length > 0) await turn.append(started.contexts);
  return true;
}

/** The conversation was made shorter beside this turn: what was made then is used. */
async function takeNewerView(turn: Turn): Promise<boolean> {
  const { deps, claimed, view } = turn;
  const asked = { epoch: deps.epoch, sessionId: claimed.sessionId, knownSeq: view.seq };
  const { session } = await deps.bus.request(store.sessionView, asked, { timeoutMs: deps.storeTimeoutMs });
  if (session.view === null) return false;
  turn.shorten(session.view);
  await turn.renewPrefix();
  return true;
}
