// Runs before a turn's first model call: start and prompt hooks, document changes, recalled memory. All added text is
// stored in the log as notes after the input.
import { textOf, type Finish, type Message } from "@parley/contracts";
import { recallNotes } from "../memory/auto-recall.ts";
import { unansweredMessages } from "../session/log-records.ts";
import type { TurnState } from "./state.ts";

/**
 * Returns a finish when a hook blocks the input. After a takeover the new leader repeats the hooks for unanswered
 * input, because the previous leader may not have run them; notes that are already in the log are not added twice.
 */
export async function runStartHooks(turn: TurnState, signal: AbortSignal): Promise<Finish | undefined> {
  const { claimed, messages } = turn;
  if (claimed.openSteps.length > 0) return undefined;
  const contexts = claimed.modelSteps === 0 ? await firstContexts(turn, messages, signal) : [];
  const unanswered = unansweredMessages(messages);
  const shown = await runPromptHooks(turn, unanswered, signal);
  if (shown.refused !== undefined) return shown.refused;
  const noted = new Set(unanswered.flatMap(({ from, parts }) => (from === undefined ? [textOf(parts)] : [])));
  const fresh = [...contexts, ...shown.contexts].filter((text) => !noted.has(text));
  if (fresh.length > 0) await turn.append(fresh);
  return undefined;
}

/** Runs the prompt hooks on these messages until one blocks its message. */
export async function runPromptHooks(
  { deps, place }: TurnState,
  messages: readonly Message[],
  signal: AbortSignal,
): Promise<{ contexts: string[]; refused?: Finish }> {
  const contexts: string[] = [];
  for (const { from, parts } of messages) {
    if (from === undefined) continue;
    const facts = { origin: from.origin, prompt: textOf(parts) };
    const verdict = await deps.runHooks("UserPromptSubmit", place, facts, signal);
    if (verdict.continue === false || verdict.decision === "deny") {
      const why = verdict.stopReason ?? verdict.reason ?? "no reason given";
      const text = `A hook blocked this message: ${why}.`;
      return { contexts, refused: { state: "failed", exitReason: "aborted", text } };
    }
    contexts.push(...verdict.contexts);
  }
  return { contexts };
}

async function firstContexts(turn: TurnState, messages: readonly Message[], signal: AbortSignal): Promise<string[]> {
  const contexts = await beginHooks(turn, messages, signal);
  if (turn.news !== null) contexts.push(turn.news);
  const recalled = await recalledBy(turn, messages);
  if (recalled !== null) contexts.push(recalled);
  return contexts;
}

/** Context from the SessionStart and SubagentStart hooks. */
async function beginHooks(
  { deps, claimed, place, view, policy }: TurnState,
  messages: readonly Message[],
  signal: AbortSignal,
): Promise<string[]> {
  const contexts: string[] = [];
  const isFirst = view.record === null && view.messages.every(({ turnId }) => turnId === claimed.turnId);
  if (isFirst) {
    const started = await deps.runHooks("SessionStart", place, { source: "startup" }, signal);
    contexts.push(...started.contexts);
  }
  if (claimed.parent !== null) {
    const facts = {
      sessionId: claimed.sessionId,
      profile: policy.profile ?? "",
      prompt: textOf(messages[0]?.parts ?? []),
      background: claimed.parent.mode === "background",
    };
    const started = await deps.runHooks("SubagentStart", place, facts, signal);
    contexts.push(...started.contexts);
  }
  return contexts;
}

/** Memory that matches what people wrote; a sub-agent searches memory itself. */
async function recalledBy({ deps, claimed }: TurnState, messages: readonly Message[]): Promise<string | null> {
  if (claimed.parent !== null) return null;
  const said = messages.flatMap(({ from, parts }) => (from?.origin === "user" ? [textOf(parts)] : []));
  return recallNotes(deps, claimed.turnId, said.join("\n"));
}
