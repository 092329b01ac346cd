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
import { type Permit } from "@parley/kit";
import { ModelError, type ModelReply } from "../model/provider.ts";
import { transcribe } from "../voice/transcribe.ts";
import { runStartHooks, runPromptHooks } from "./prompt-hooks.ts";
import { nextAction, type Decision } from "./next-action.ts";
import { finishTurn, reportEnd } from "./end-turn.ts";
import { note, noteText, repeatWarningDue, roundsOf, unfinishedText } from "../limits/loop-guards.ts";
import { limitReached } from "../limits/limits.ts";
import { compactIfNeeded } from "./compact.ts";
import { modelStep } from "./model-step.ts";
import { failureNotice, stoppedByUser } from "./notices.ts";
import { roundContext } from "./round-context.ts";
import { runToolRound } from "./tool-round.ts";
import { traceTurn } from "../telemetry/tracing.ts";
import type { TurnDeps, TurnStart } from "./dependencies.ts";
import { TurnState } from "./state.ts";

/** Why a running turn is interrupted. */
export class TurnInterruptedError extends Error {
  override readonly name = "Interruption";
}

export interface TurnSignals {
  /** Aborted with an Interruption when the user stops the turn. */
  stop: AbortSignal;
  /** True when this replica hands over: the turn stops at its next commit, for the next leader. */
  handingOver(): boolean;
  /** The turn's slot: held by the caller before and after. */
  slot: Permit;
  /** Whether input that may join this turn has arrived since the last call. */
  inputCame(): boolean;
}

/**
 * `left`: at a commit, for the next leader. `parked`: it waits for somebody else. `again`: what it waited for has
 * arrived. `queued`: it has ended and more input is queued.
 */
export type TurnEnd = "left" | "parked" | "again" | "queued" | "finished";

const skippedText = "Skipped: a new message arrived before this call was started.";

/** Runs the turn until it ends, has to wait, or reaches its next commit during a hand-over. */
export async function runTurn(deps: TurnDeps, start: TurnStart, signals: TurnSignals): Promise<TurnEnd> {
  const turn = new TurnState(deps, start);
  const { turnId, inboxIds, attempt } = start.claimed;
  turn.publish({ type: "turn.started", turnId, inboxIds, attempt });
  const agent = turn.policy.profile ?? "parley";
  return traceTurn(start.claimed, { agent, provider: turn.model.name }, async () => {
    deps.budgets.open(start.claimed);
    try {
      return await new Loop(turn, signals).run();
    } catch (error) {
      return await endedBy(turn, error);
    } finally {
      deps.budgets.close(start.claimed);
    }
  });
}

async function endedBy(turn: TurnState, error: unknown): Promise<TurnEnd> {
  if (error instanceof TurnInterruptedError) return finishTurn(turn, stoppedByUser);
  if (error instanceof ModelError) {
    const { turnId } = turn.claimed;
    turn.deps.log.warn({ err: error, turn: turnId, failure: error.failure }, "model call failed");
    return finishTurn(turn, failureNotice(error));
  }
  throw error;
}

class Loop {
  readonly #turn: TurnState;
  readonly #signals: TurnSignals;
  /** The provider refused a prompt as too long; compacting is tried once. */
  #overflowed = false;

  constructor(turn: TurnState, signals: TurnSignals) {
    this.#turn = turn;
    this.#signals = signals;
  }

  async run(): Promise<TurnEnd> {
    const turn = this.#turn;
    const { stop } = this.#signals;
    if (turn.cancelRequested) throw new TurnInterruptedError("stopped");
    const refused = await runStartHooks(turn, stop);
    if (refused !== undefined) return finishTurn(turn, refused);
    let room: "check" | "overflow" = "check";
    for (;;) {
      const settled = await this.#settleToolCalls();
      if (settled !== undefined) return settled;
      if (this.#signals.handingOver()) {
        await turn.leave();
        return "left";
      }
      stop.throwIfAborted();
      const limit = limitReached(turn.policy.limits, turn.progress());
      if (limit !== undefined) return finishTurn(turn, limit);
      await this.#transcribeAudio();
      await compactIfNeeded(turn, room, stop);
      const reply = await this.#askModel();
      const decision = await this.#decide(reply);
      faultPoint("agent.before_commit");
      const end = await turn.commit(reply, decision);
      faultPoint("agent.after_commit");
      if (end !== undefined) {
        if (decision.next === "finish") await reportEnd(turn, decision.finish);
        return end.queued ? "queued" : "finished";
      }
      room = decision.next === "again" && decision.compact ? "overflow" : "check";
      // The stop signal may have been lost; the store has recorded it.
      if (turn.cancelRequested) throw new TurnInterruptedError("stopped");
    }
  }

  /** Completes open calls and lets input join. Returns a turn end when the turn has to stop here. */
  async #settleToolCalls(): Promise<TurnEnd | undefined> {
    const turn = this.#turn;
    let skipped: string | null = null;
    const notes: string[] = [];
    if (turn.open.length > 0) {
      faultPoint("agent.before_tools");
      const context = roundContext(turn, { slot: this.#signals.slot, steered: () => this.#hasSteeringInput() });
      const round = await runToolRound(turn.deps, context, turn.open, this.#signals.stop);
      turn.recordRound(round);
      faultPoint("agent.after_tools");
      if (round.stop !== null) {
        return finishTurn(turn, { state: "cancelled", exitReason: "interrupted", text: round.stop });
      }
      if (round.waitingFor.length > 0) {
        return (await turn.park(round.waitingFor, round.wakeAt)) ? "parked" : "again";
      }
      if (round.sleeps) return finishTurn(turn, { state: "done", exitReason: "end_turn", text: "(asleep)" }, null);
      if (round.skipped) skipped = skippedText;
      notes.push(...round.notes);
      if (repeatWarningDue(turn.messages)) {
        notes.push(
          noteText(
            "repeated",
            "its result has not changed. Try a different approach, or explain what prevents you from continuing.",
          ),
        );
      }
    }
    const absorb = this.#hasSteeringInput();
    if (!absorb && notes.length === 0 && skipped === null) return undefined;
    turn.steerable = false;
    const before = turn.messages.length;
    await turn.append(notes, { absorb, skipped });
    return this.#runHooksOnInput(turn.messages.slice(before));
  }

  /** Whether input that may join is waiting; remembered until it has joined. */
  #hasSteeringInput(): boolean {
    const turn = this.#turn;
    turn.steerable = this.#signals.inputCame() || turn.steerable;
    return turn.steerable;
  }

  /** Input that joined runs through the prompt hooks as well. */
  async #runHooksOnInput(messages: readonly Message[]): Promise<TurnEnd | undefined> {
    const turn = this.#turn;
    const { refused, contexts } = await runPromptHooks(turn, messages, this.#signals.stop);
    if (refused !== undefined) return finishTurn(turn, refused);
    if (contexts.length > 0) await turn.append(contexts);
    return undefined;
  }

  /** Adds transcripts of recordings, because the model reads text. */
  async #transcribeAudio(): Promise<void> {
    const turn = this.#turn;
    const heard = await transcribe(turn.deps, turn.messages, this.#signals.stop);
    if (heard.length > 0) await turn.append(heard);
  }

  async #askModel(): Promise<ModelReply> {
    const turn = this.#turn;
    const { stop } = this.#signals;
    faultPoint("agent.before_model");
    try {
      return await modelStep(turn, stop);
    } catch (error) {
      if (!(error instanceof ModelError) || error.failure !== "context_overflow" || this.#overflowed) throw error;
      // The model's window is smaller than assumed: try once with a shorter prompt.
      this.#overflowed = true;
      turn.deps.models.invalidateWindow(turn.model);
      if (!(await compactIfNeeded(turn, "overflow", stop))) throw error;
      return modelStep(turn, stop);
    }
  }

  /** Whether there are earlier turns: the running turn alone is never compacted to make room for an answer. */
  #hasPast(): boolean {
    const { view, claimed } = this.#turn;
    return view.messages.some(({ turnId }) => turnId !== claimed.turnId);
  }

  async #decide(reply: ModelReply): Promise<Decision> {
    const turn = this.#turn;
    const { agent, output, compaction } = turn.deps.settings;
    const rounds = roundsOf(turn.messages);
    const decision = nextAction(reply, {
      output: turn.policy.output,
      said: turn.said,
      rounds,
      before: unfinishedText(turn.messages),
      onMaxTokens: agent.on_max_tokens,
      maxNudges: agent.max_nudges,
      unspoken: output.unspoken,
      okToken: turn.okToken,
      canCompact: compaction.strategies.length > 0 && !this.#overflowed && this.#hasPast(),
    });
    if (decision.next !== "finish" || decision.finish.exitReason !== "end_turn") return decision;
    const facts = {
      exitReason: "end_turn" as const,
      lastText: textOf(decision.parts),
      stopHookActive: rounds.stopHookActive,
    };
    const verdict = await turn.deps.runHooks("Stop", turn.place, facts, this.#signals.stop);
    // For the Stop event, `deny` means: do not stop yet.
    if (verdict.continue === false || verdict.decision !== "deny") return decision;
    const words = [verdict.reason ?? "", ...verdict.contexts].filter((text) => text !== "").join("\n");
    return { next: "again", parts: decision.parts, note: note("stopHook", words), compact: false };
  }
}
