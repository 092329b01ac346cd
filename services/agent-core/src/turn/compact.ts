// Compacts a running turn's conversation before its next model call when due, then renews the prefix, records the cost,
// sends the notice and runs the SessionStart hooks.
import { store } from "@parley/contracts";
import { compact, isOutdated } from "./compactor.ts";
import { showsTaint } from "../policy/taint.ts";
import type { TurnState } from "./state.ts";

/** `overflow`: compact in any case; `check`: compact if due. True when compacted. */
export async function compactIfNeeded(
  turn: TurnState,
  cause: "check" | "overflow",
  signal: AbortSignal,
): Promise<boolean> {
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
      say: turn.publish.bind(turn),
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
  turn.applyView(compacted.record);
  deps.budgets.spend(claimed, compacted.costMicros);
  if (compacted.notice !== null) turn.publish({ type: "notice", turnId: claimed.turnId, text: compacted.notice });
  await turn.renewPrefix();
  const started = await deps.runHooks("SessionStart", turn.place, { source: "compact" }, signal);
  if (started.contexts.length > 0) await turn.append(started.contexts);
  return true;
}

/** Another compaction was stored during this turn: its record is applied. */
async function takeNewerView(turn: TurnState): Promise<boolean> {
  const { deps, claimed, view } = turn;
  const asked = { sessionId: claimed.sessionId, knownSeq: view.seq };
  const { session } = await deps.leaderStore.request(store.sessionView, asked);
  if (session.view === null) return false;
  turn.applyView(session.view);
  await turn.renewPrefix();
  return true;
}
