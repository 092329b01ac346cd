// Compacts a running turn's conversation before its next model call when due, then renews the prefix, records the cost,
// sends the notice and runs the SessionStart hooks.
import { store } from "@parley/contracts";
import { showsTaint } from "../policy/taint.ts";
import { appendToLog, showRecord } from "./commit.ts";
import { compact, isOutdated } from "./compactor.ts";
import type { TurnDeps } from "./dependencies.ts";
import {
  headingsOf,
  hookContextOf,
  isTurnTainted,
  pendingMessages,
  publish,
  visibleMessages,
  type WritableTurn,
} from "./state.ts";

/** `overflow`: compact in any case; `check`: compact if due. True when compacted. */
export async function compactIfNeeded(
  turn: WritableTurn,
  deps: TurnDeps,
  cause: "check" | "overflow",
  signal: AbortSignal,
): Promise<boolean> {
  const { claimed } = turn;
  const { sessionId, turnId } = claimed;
  const { log, leaderStore, runHooks } = deps;
  const { models, retry, budgets } = deps.model;
  const compacted = await compact(
    { log, leaderStore, runHooks, models, retry, settings: deps.settings.compaction },
    {
      sessionId,
      turnId,
      running: true,
      view: turn.view,
      tainted: () =>
        isTurnTainted(deps, turn) || showsTaint(turn.view.record, visibleMessages(deps, turn).all, turn.toolbox),
      pending: pendingMessages(turn),
      textOnly: deps.settings.context.history === "text_only",
      prefix: turn.prefix,
      policy: turn.policy,
      provider: turn.model,
      headings: headingsOf(deps, turn),
      hookContext: hookContextOf(turn),
      cause,
      publish: (event) => publish(deps, turn, event),
    },
    signal,
  ).catch((error: unknown) => {
    if (isOutdated(error)) return "outdated" as const;
    throw error;
  });
  if (compacted === null) return false;
  if (compacted === "outdated") {
    // Another compaction was stored during this turn: its record is applied.
    const { session } = await leaderStore.request(store.sessionView, { sessionId, knownSeq: turn.view.seq });
    if (session.view === null) return false;
    await showRecord(turn, deps, session.view);
    return true;
  }
  if (compacted.outcome === "flush_first") {
    await appendToLog(turn, deps, [compacted.words]);
    return false;
  }
  budgets.spend(claimed, compacted.costMicros);
  await showRecord(turn, deps, compacted.record);
  if (compacted.notice !== null) publish(deps, turn, { type: "notice", turnId, text: compacted.notice });
  const started = await runHooks("SessionStart", hookContextOf(turn), { source: "compact" }, signal);
  if (started.contexts.length > 0) await appendToLog(turn, deps, started.contexts);
  return true;
}
