// Runs before a turn's first model call: start and prompt hooks, document changes, recalled memory. All added text is
// stored in the log as notes after the input.
import { store, textOf, type Finish, type Message } from "@parley/contracts";
import { recallNotes } from "../memory/auto-recall.ts";
import { unansweredMessages } from "../session/log-records.ts";
import { appendToLog } from "./commit.ts";
import type { TurnDeps } from "./dependencies.ts";
import { hookContextOf, turnMessages, type TurnState, type WritableTurn } from "./state.ts";

/**
 * Returns a finish when a hook blocks the input. After a takeover the new leader repeats the hooks for unanswered
 * input, because the previous leader may not have run them; notes that are already in the log are not added twice.
 */
export async function runStartHooks(
  turn: WritableTurn,
  deps: TurnDeps,
  signal: AbortSignal,
): Promise<Finish | undefined> {
  const { claimed } = turn;
  const messages = turnMessages(turn);
  if (claimed.openSteps.length > 0) return undefined;
  const contexts = claimed.modelSteps === 0 ? await firstContexts(turn, deps, messages, signal) : [];
  const unanswered = unansweredMessages(messages);
  const shown = await runPromptHooks(turn, deps, unanswered, signal);
  if (shown.refused !== undefined) return shown.refused;
  const noted = new Set(unanswered.flatMap(({ from, parts }) => (from === undefined ? [textOf(parts)] : [])));
  const fresh = [...contexts, ...shown.contexts].filter((text) => !noted.has(text));
  if (fresh.length > 0) await appendToLog(turn, deps, fresh);
  return undefined;
}

/** Runs the prompt hooks on these messages until one blocks its message. */
export async function runPromptHooks(
  turn: TurnState,
  deps: TurnDeps,
  messages: readonly Message[],
  signal: AbortSignal,
): Promise<{ contexts: string[]; refused?: Finish }> {
  const contexts: string[] = [];
  for (const { from, parts } of messages) {
    if (from === undefined) continue;
    const facts = { origin: from.origin, prompt: textOf(parts) };
    const verdict = await deps.runHooks("UserPromptSubmit", hookContextOf(turn), facts, signal);
    if (verdict.continue === false || verdict.decision === "deny") {
      const why = verdict.stopReason ?? verdict.reason ?? "no reason given";
      const text = `A hook blocked this message: ${why}.`;
      return { contexts, refused: { state: "failed", exitReason: "aborted", text } };
    }
    contexts.push(...verdict.contexts);
  }
  return { contexts };
}

async function firstContexts(
  turn: TurnState,
  deps: TurnDeps,
  messages: readonly Message[],
  signal: AbortSignal,
): Promise<string[]> {
  const contexts = await beginHooks(turn, deps, messages, signal);
  if (turn.news !== null) contexts.push(turn.news);
  const recalled = await recalledBy(turn, deps, messages);
  if (recalled !== null) contexts.push(recalled);
  return contexts;
}

/** Context from the SessionStart and SubagentStart hooks. */
async function beginHooks(
  turn: TurnState,
  deps: TurnDeps,
  messages: readonly Message[],
  signal: AbortSignal,
): Promise<string[]> {
  const { claimed, view, policy } = turn;
  const hookContext = hookContextOf(turn);
  const contexts: string[] = [];
  const isFirst = view.record === null && view.messages.every(({ turnId }) => turnId === claimed.turnId);
  const source = turn.session.overrides.start ?? (isFirst ? "startup" : undefined);
  if (source !== undefined) {
    const started = await deps.runHooks("SessionStart", hookContext, { source }, signal);
    contexts.push(...started.contexts);
  }
  if (turn.session.overrides.start !== undefined) {
    const { sessionId } = claimed;
    await deps.leaderStore.request(store.sessionUpdate, { sessionId, overrides: { start: null } });
  }
  if (claimed.parent !== null) {
    const facts = {
      sessionId: claimed.sessionId,
      profile: policy.profile ?? "",
      prompt: textOf(messages[0]?.parts ?? []),
      background: claimed.parent.mode === "background",
    };
    const started = await deps.runHooks("SubagentStart", hookContext, facts, signal);
    contexts.push(...started.contexts);
  }
  return contexts;
}

/** Memory that matches what people wrote; a sub-agent searches memory itself. */
async function recalledBy(
  { claimed }: TurnState,
  deps: TurnDeps,
  messages: readonly Message[],
): Promise<string | null> {
  const { auto_recall: limit } = deps.settings.memory;
  if (limit === 0 || claimed.parent !== null) return null;
  const userTexts = messages.flatMap(({ from, parts }) => (from?.origin === "user" ? [textOf(parts)] : []));
  return recallNotes({ ...deps.enrichment, log: deps.log, limit }, claimed.turnId, userTexts.join("\n"));
}
