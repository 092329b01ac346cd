// What comes before a turn's first model call: the hooks of the session and of what people have said, what has changed in the
// documents, what memory recalls. Everything that is added stands in the log, as notes behind what was said.
import { textOf, type Finish, type Message } from "@parley/contracts";
import { recall } from "../memory/recall.ts";
import { unansweredIn } from "./turn-log.ts";
import type { Turn } from "./turn.ts";

/**
 * An end when a hook does not let through what was said. A leader that goes on after another one asks about what nobody has
 * answered yet once more, for the other one may not have come to it; what it has noted down is not said twice.
 */
export async function begin(turn: Turn, signal: AbortSignal): Promise<Finish | undefined> {
  const { claimed, messages } = turn;
  if (claimed.openSteps.length > 0) return undefined;
  const contexts = claimed.modelSteps === 0 ? await firstContexts(turn, messages, signal) : [];
  const unanswered = unansweredIn(messages);
  const shown = await showPrompts(turn, unanswered, signal);
  if (shown.refused !== undefined) return shown.refused;
  const noted = new Set(unanswered.flatMap(({ from, parts }) => (from === undefined ? [textOf(parts)] : [])));
  const fresh = [...contexts, ...shown.contexts].filter((text) => !noted.has(text));
  if (fresh.length > 0) await turn.append(fresh);
  return undefined;
}

/** Shows what people say in these messages to the hooks, until one of them refuses it. */
export async function showPrompts(
  { deps, place }: Turn,
  messages: readonly Message[],
  signal: AbortSignal,
): Promise<{ contexts: string[]; refused?: Finish }> {
  const contexts: string[] = [];
  for (const { from, parts } of messages) {
    if (from === undefined) continue;
    const facts = { origin: from.origin, prompt: textOf(parts) };
    const verdict = await deps.runHooks("UserPromptSubmit", place, facts, signal);
    if (verdict.continue === false || verdict.decision === "deny") {
      const why = verdict.stopReason ?? verdict.reason ?? "it gave no reason";
      const text = `A hook did not let this through: ${why}.`;
      return { contexts, refused: { state: "failed", exitReason: "aborted", text } };
    }
    contexts.push(...verdict.contexts);
  }
  return { contexts };
}

async function firstContexts(turn: Turn, messages: readonly Message[], signal: AbortSignal): Promise<string[]> {
  const contexts = await beginHooks(turn, messages, signal);
  if (turn.news !== null) contexts.push(turn.news);
  const recalled = await recalledBy(turn, messages);
  if (recalled !== null) contexts.push(recalled);
  return contexts;
}

/** What the hooks of a session's or a sub-agent's beginning add. */
async function beginHooks(
  { deps, claimed, place, view, policy }: Turn,
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

/** What memory holds about what a person has said; a sub-agent looks for itself. */
async function recalledBy({ deps, claimed }: Turn, messages: readonly Message[]): Promise<string | null> {
  if (claimed.parent !== null) return null;
  const said = messages.flatMap(({ from, parts }) => (from?.origin === "user" ? [textOf(parts)] : []));
  return recall(deps, claimed.turnId, said.join("\n"));
}
