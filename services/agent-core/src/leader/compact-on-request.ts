// Requests of people between two turns of a session: compaction, and running the SessionEnd hooks.
import {
  sessionEvent,
  store,
  type CompactionSettings,
  type controlCompact,
  type controlSessionEnded,
  type InputOf,
  type OutputOf,
} from "@parley/contracts";
import { compact, isOutdated, renderView } from "../turn/compactor.ts";
import { showsSource } from "../prompt/message-header.ts";
import { resolvePolicy } from "../policy/turn-policy.ts";
import type { Toolbox } from "../tools/toolbox.ts";
import { showsTaint } from "../policy/taint.ts";
import type { TurnDeps } from "../turn/dependencies.ts";
import { briefMs } from "../store-client/leader-store.ts";
import type { SessionView } from "../session/view.ts";

/** A session between two turns, as the store returns it. */
export type IdleSession = OutputOf<typeof store.sessionView>;

/** Limit for the SessionEnd hooks. */
const hookTimeoutMs = 60_000;

export interface CompactionRequest {
  sessionId: string;
  /** What the summary must keep. */
  instructions: string | undefined;
  /**
   * Omitted: a person requested it. `idle`: the session was idle for long. `ahead`: nearly due, and nobody has to wait
   * now.
   */
  cause?: "idle" | "ahead";
}

/** Share of a trigger at which a conversation is compacted ahead of time. */
const aheadShare = 0.85;

function settingsFor({ cause }: CompactionRequest, settings: CompactionSettings): CompactionSettings {
  if (cause !== "ahead") return settings;
  const { trigger_share: share, trigger_tokens: tokens } = settings;
  return {
    ...settings,
    trigger_share: share * aheadShare,
    trigger_tokens: Math.floor(tokens * aheadShare),
    memory_flush: false,
  };
}

/**
 * Compacts a session without a running turn; `view` is current as of `seen`, `toolbox` contains the session's tools.
 */
export async function compactOnDemand(
  deps: TurnDeps,
  demand: CompactionRequest,
  seen: IdleSession,
  { view, toolbox }: { view: SessionView; toolbox: Toolbox },
  signal: AbortSignal,
): Promise<OutputOf<typeof controlCompact>> {
  const { sessionId, instructions, cause } = demand;
  const { session, sessionKey, turnId } = seen;
  // Without a prefix no model was called since the last compaction.
  if (turnId === null || session.prefixHash === null) return { outcome: "nothing" };
  const prefix = await deps.model.prefixes.load(session.prefixHash);
  if (prefix === undefined) return { outcome: "nothing" };
  const policy = resolvePolicy(deps.settings, session);
  const { settings } = deps;
  const compacted = await compact(
    { ...deps, ...deps.model, settings: settingsFor(demand, settings.compaction) },
    {
      sessionId,
      turnId,
      running: false,
      view,
      tainted: () => showsTaint(view.record, view.messages, toolbox),
      pending: [],
      textOnly: settings.context.history === "text_only",
      prefix,
      policy,
      provider: deps.model.models.turnModelOrMain(policy),
      headings:
        session.parentId === null
          ? { timeZone: settings.agent.time_zone, source: showsSource(settings, policy, sessionKey) }
          : undefined,
      hookContext: {
        sessionId,
        sessionKey,
        turnId: null,
        permissionMode: policy.permissionMode,
        profile: policy.profile,
      },
      cause: cause === undefined ? "demand" : cause === "ahead" ? "check" : cause,
      instructions,
      publish: (event) => deps.bus.publish(sessionEvent, event, { session: sessionId }),
    },
    signal,
  ).catch((error: unknown) => {
    // Another compaction was stored first.
    if (isOutdated(error)) return null;
    throw error;
  });
  if (compacted?.outcome !== "compacted") return { outcome: "nothing" };
  renderView(view, compacted);
  deps.model.budgets.spendOutsideTurns(compacted.costMicros);
  const { tokensBefore, tokensAfter, notice } = compacted;
  return { outcome: "compacted", tokensBefore, tokensAfter, notice };
}

/**
 * Runs the SessionEnd hooks after a conversation left a session. Rejects with NOT_FOUND when the session does not
 * exist.
 */
export async function sessionEnded(
  deps: TurnDeps,
  { sessionId, reason }: InputOf<typeof controlSessionEnded>,
): Promise<void> {
  const known = { sessionId, knownSeq: Number.MAX_SAFE_INTEGER };
  const { session, sessionKey } = await deps.leaderStore.request(store.sessionView, known, { timeoutMs: briefMs });
  const { permissionMode, profile } = resolvePolicy(deps.settings, session);
  const hookContext = { sessionId, sessionKey, turnId: null, permissionMode, profile };
  await deps.runHooks("SessionEnd", hookContext, { reason }, AbortSignal.timeout(hookTimeoutMs));
}
