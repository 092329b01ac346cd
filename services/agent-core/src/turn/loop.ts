// One turn, from its claim to its end; it resumes where the previous leader stopped.
//
//   begin   → hooks on session start and on the prompt
//   settle  → open tool calls get their results; a call that waits for somebody parks the turn
//   drain   → waiting input that may join is added after the results
//   check   → stopped? a limit? handing over?
//   compact → if the conversation has outgrown the model's window
//   model   → one call, streamed; committed whole with the tool calls it requests
//   branch  → tools: back to settle · paused, cut off or a hook continues: back to drain · else the turn has ended
//
// Committed work is never repeated; a crash before a commit repeats that one call.
import { faultPoint } from "@parley/chassis";
import { textOf, type Message } from "@parley/contracts";
import type { Permit } from "@parley/kit";
import { note, noteText, repeatWarningDue, roundsOf, unfinishedText } from "../limits/loop-guards.ts";
import { limitReached } from "../limits/limits.ts";
import { ModelError, type ModelReply } from "../model/provider.ts";
import { addressesGivenIn } from "../policy/web-access.ts";
import { traceTurn } from "../telemetry/telemetry.ts";
import { transcribe } from "../voice/transcribe.ts";
import { noneAhead, startAhead } from "./ahead-calls.ts";
import { applyRequirements } from "./answer-requirements.ts";
import { appendToLog, commitReply, park, recordRound, settleForNextLeader } from "./commit.ts";
import { compactIfNeeded } from "./compact.ts";
import type { TurnDeps, TurnStart } from "./dependencies.ts";
import { failureNotice, finishTurn, reportEnd, stoppedByUser } from "./finish.ts";
import { modelStep, type TimedReply } from "./model-step.ts";
import { cutByCaller, nextAction, type Decision } from "./next-action.ts";
import { runPromptHooks, runStartHooks } from "./prompt-hooks.ts";
import {
  beginTurn,
  hookContextOf,
  okTokenOf,
  outputOf,
  outputTokensLeft,
  pendingMessages,
  progressOf,
  publish,
  taintShown,
  textsSent,
  turnMessages,
  type WritableTurn,
} from "./state.ts";
import { runToolRound, type RoundContext } from "./tool-round.ts";
import { isDueAfter } from "./window-fill.ts";

/** Why a running turn is interrupted. */
export class TurnInterruptedError extends Error {
  override readonly name = "TurnInterruptedError";
}

export interface TurnSignals {
  /** Aborted with a TurnInterruptedError when the user stops the turn. */
  stop: AbortSignal;
  /** True when this replica hands over: the turn stops at its next commit, for the next leader. */
  handingOver(): boolean;
  /** The turn's slot: held by the caller before and after. */
  slot: Permit;
  /** Whether input that may join this turn has arrived since the last call. */
  inputCame(): boolean;
}

/**
 * `handed_over`: at a commit, for the next leader. `parked`: it waits for somebody else. `resumable`: what it waited for
 * has arrived. `more_queued`: it has ended and more input is queued.
 */
export type TurnEnd = "handed_over" | "parked" | "resumable" | "more_queued" | "finished";

const skippedText = "Skipped: a new message arrived before this call was started.";
const repeatedText =
  "its result has not changed. Try a different approach, or explain what prevents you from continuing.";

/** Runs the turn until it ends, has to wait, or reaches its next commit during a hand-over. */
export async function runTurn(deps: TurnDeps, start: TurnStart, signals: TurnSignals): Promise<TurnEnd> {
  const { claimed } = start;
  const { turnId, inboxIds, attempt } = claimed;
  const turn = beginTurn(deps, start);
  publish(deps, turn, { type: "turn.started", turnId, inboxIds, attempt });
  const traced = { agent: turn.policy.profile ?? "parley", provider: turn.model.name };
  return traceTurn(claimed, traced, async () => {
    deps.model.budgets.open(claimed);
    try {
      return await runSteps(turn, deps, signals);
    } catch (error) {
      if (error instanceof TurnInterruptedError) return finishTurn(turn, deps, stoppedByUser);
      if (!(error instanceof ModelError)) throw error;
      deps.log.warn({ err: error, turnId, failure: error.failure }, "model call failed");
      return finishTurn(turn, deps, failureNotice(error));
    } finally {
      deps.model.budgets.close(claimed);
    }
  });
}

async function runSteps(turn: WritableTurn, deps: TurnDeps, signals: TurnSignals): Promise<TurnEnd> {
  const { stop } = signals;
  if (turn.cancelRequested) throw new TurnInterruptedError("stopped");
  const refused = await runStartHooks(turn, deps, stop);
  if (refused !== undefined) return finishTurn(turn, deps, refused);
  let cause: "check" | "overflow" = "check";
  for (;;) {
    const settled = await settleToolCalls(turn, deps, signals);
    if (settled !== undefined) return settled;
    if (signals.handingOver()) {
      await settleForNextLeader(turn, deps);
      return "handed_over";
    }
    stop.throwIfAborted();
    const limit = limitReached(turn.policy.limits, progressOf(deps, turn));
    if (limit !== undefined) return finishTurn(turn, deps, limit);
    if (outputTokensLeft(turn) === 0) return finishTurn(turn, deps, cutByCaller(unfinishedText(turnMessages(turn))));
    // Added as text, because the model reads text.
    const transcripts = await transcribe({ ...deps, ...deps.enrichment }, turnMessages(turn), stop);
    if (transcripts.length > 0) await appendToLog(turn, deps, transcripts);
    // Another answer would fill the window again.
    if (!(await compactIfNeeded(turn, deps, cause, stop)) && cause === "overflow") turn.overflowed = true;
    const reply = await askModel(turn, deps, stop);
    const decision = await decide(turn, deps, reply, stop);
    faultPoint("agent.before_commit");
    const end = await commitReply(turn, deps, reply, decision, (steps) =>
      startAhead(deps, roundContext(turn, deps, signals), steps, stop),
    );
    faultPoint("agent.after_commit");
    if (end !== undefined) {
      if (decision.next === "finish") await reportEnd(turn, deps, decision.finish);
      return end.queued ? "more_queued" : "finished";
    }
    cause = decision.next === "again" && decision.compact ? "overflow" : "check";
    // The stop signal may have been lost; the store has recorded it.
    if (turn.cancelRequested) throw new TurnInterruptedError("stopped");
  }
}

/** Completes open calls and lets input join. Returns a turn end when the turn has to stop here. */
async function settleToolCalls(turn: WritableTurn, deps: TurnDeps, signals: TurnSignals): Promise<TurnEnd | undefined> {
  let skipped: string | null = null;
  const notes: string[] = [];
  if (turn.open.length > 0) {
    faultPoint("agent.before_tools");
    const context = { ...roundContext(turn, deps, signals), ahead: await turn.ahead };
    const round = await runToolRound(deps, context, turn.open, signals.stop);
    recordRound(turn, round);
    if (round.failure !== null) throw round.failure.error;
    faultPoint("agent.after_tools");
    if (round.stop !== null) {
      return finishTurn(turn, deps, { state: "cancelled", exitReason: "interrupted", text: round.stop });
    }
    if (round.waitingFor.length > 0) return (await park(turn, deps, round)) ? "parked" : "resumable";
    if (round.sleeps) {
      return finishTurn(turn, deps, { state: "done", exitReason: "end_turn", text: "(asleep)" }, null);
    }
    if (round.skipped) skipped = skippedText;
    notes.push(...round.notes);
    if (repeatWarningDue(turnMessages(turn))) notes.push(noteText("repeated", repeatedText));
  }
  const absorb = hasSteeringInput(turn, signals);
  if (!absorb && notes.length === 0 && skipped === null) return undefined;
  if (absorb) turn.inputWaits = false;
  const before = turnMessages(turn).length;
  await appendToLog(turn, deps, notes, { absorb, skipped });
  return runHooksOnInput(turn, deps, turnMessages(turn).slice(before), signals.stop);
}

/** The facts of the turn for one round of its tool calls. */
function roundContext(turn: WritableTurn, deps: TurnDeps, signals: TurnSignals): RoundContext {
  const { claimed, policy, toolbox } = turn;
  const publishEvent: RoundContext["publish"] = (event) => publish(deps, turn, event);
  return {
    turn: claimed,
    policy,
    // A copy: rules that an approval adds apply to later calls of the round; the next commit returns them.
    overrides: { ...turn.session.overrides },
    toolbox,
    hookContext: hookContextOf(turn),
    taint: taintShown(deps, turn),
    ahead: noneAhead,
    ownerAddresses: () => addressesGivenIn([...turn.view.messages, ...pendingMessages(turn)]),
    publish: publishEvent,
    slot: signals.slot,
    steered: () => hasSteeringInput(turn, signals),
    samplingCall: (n, tool) => ({
      turn: claimed,
      n,
      tool,
      limits: () => turn.policy.limits,
      progress: () => progressOf(deps, turn),
      used: (usage, costMicros) => turn.usage.add(usage, costMicros),
      notice: (text) => publishEvent({ type: "notice", turnId: claimed.turnId, text }),
    }),
  };
}

/** Whether input that may join is waiting; remembered until it has joined. */
function hasSteeringInput(turn: WritableTurn, signals: TurnSignals): boolean {
  if (signals.inputCame()) turn.inputWaits = true;
  return turn.inputWaits;
}

/** Input that joined runs through the prompt hooks as well. */
async function runHooksOnInput(
  turn: WritableTurn,
  deps: TurnDeps,
  messages: readonly Message[],
  stop: AbortSignal,
): Promise<TurnEnd | undefined> {
  const { refused, contexts } = await runPromptHooks(turn, deps, messages, stop);
  if (refused !== undefined) return finishTurn(turn, deps, refused);
  if (contexts.length > 0) await appendToLog(turn, deps, contexts);
  return undefined;
}

async function askModel(turn: WritableTurn, deps: TurnDeps, stop: AbortSignal): Promise<TimedReply> {
  faultPoint("agent.before_model");
  const ask = () => modelStep(turn, deps, (text) => (turn.streamedText = text), stop);
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof ModelError) || error.failure !== "context_overflow" || turn.overflowed) throw error;
    // The model's window is smaller than assumed: try once with a shorter prompt.
    turn.overflowed = true;
    deps.model.models.invalidateWindow(turn.model);
    if (!(await compactIfNeeded(turn, deps, "overflow", stop))) throw error;
    return ask();
  }
}

async function decide(turn: WritableTurn, deps: TurnDeps, reply: ModelReply, stop: AbortSignal): Promise<Decision> {
  const { agent, output, compaction } = deps.settings;
  const { view, claimed } = turn;
  const messages = turnMessages(turn);
  const rounds = roundsOf(messages);
  // The running turn alone is never compacted to make room for an answer.
  const hasPast = view.messages.some(({ turnId }) => turnId !== claimed.turnId);
  const canCompact = compaction.strategies.length > 0 && !turn.overflowed && hasPast;
  const tokensLeft = outputTokensLeft(turn);
  const next = nextAction(reply, {
    output: outputOf(turn),
    sentTexts: textsSent(turn),
    rounds,
    before: unfinishedText(messages),
    onMaxTokens: agent.on_max_tokens,
    maxNudges: agent.max_nudges,
    unspoken: output.unspoken,
    okToken: okTokenOf(deps, turn),
    canCompact,
    isDue:
      reply.stopReason === "max_tokens" &&
      canCompact &&
      (await isDueAfter(
        reply.usage,
        { models: deps.model.models, settings: compaction },
        { view, prefix: turn.prefix, policy: turn.policy, provider: turn.model },
      )),
    isCallersLimit: tokensLeft !== undefined && tokensLeft <= turn.policy.maxOutputTokens,
  });
  const decision = claimed.answer === undefined ? next : applyRequirements(next, claimed.answer, rounds);
  if (decision.next !== "finish" || decision.finish.exitReason !== "end_turn") return decision;
  const facts = {
    exitReason: "end_turn" as const,
    lastText: textOf(decision.parts),
    stopHookActive: rounds.stopHookActive,
  };
  const verdict = await deps.runHooks("Stop", hookContextOf(turn), facts, stop);
  // For the Stop event, `deny` means: do not stop yet.
  if (verdict.continue === false || verdict.decision !== "deny") return decision;
  const words = [verdict.reason ?? "", ...verdict.contexts].filter((text) => text !== "").join("\n");
  return { next: "again", parts: decision.parts, note: note("stopHook", words), compact: false };
}
