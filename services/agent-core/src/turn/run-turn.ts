// One turn, from its claim to its end, resumed wherever an earlier leader left it.
//
//   begin   → hooks of the session and of the prompt
//   settle  → open tool calls get their results; what waits for somebody else parks the turn
//   drain   → input that may join does, behind the results
//   check   → stopped? a limit? handing over?
//   compact → where the conversation has outgrown its window
//   model   → one call, streamed; committed whole with the calls it asks for
//   branch  → tools: back to settle · paused, cut off, or a hook wants more: back to drain · else the commit has ended the turn
//
// What has been committed is never done again; a crash before a commit repeats that one call.
import { faultPoint } from "@parley/chassis";
import { store, textOf, type Finish, type Part } from "@parley/contracts";
import { callModel } from "../model/call.ts";
import { ModelError, type ModelReply, type ModelRequest } from "../model/provider.ts";
import { promptTokens } from "../model/prices.ts";
import { estimateTokens } from "../compaction/estimate.ts";
import { viewMessages } from "../compaction/view-messages.ts";
import { recall } from "../memory/recall.ts";
import { transcripts } from "../speech/transcripts.ts";
import { compact, isOutdated, show, type CompactorDeps } from "./compactor.ts";
import { buildPrompt, saidOnly } from "./context.ts";
import { decide, type Decision } from "./decide.ts";
import { note, repeatWarningDue, roundsOf, unfinishedText } from "./guards.ts";
import { limitReached } from "./limits.ts";
import { failureNotice, stoppedByUser } from "./notices.ts";
import { prefixTokens } from "./prefix.ts";
import { fingerprints, firstChange } from "./sent-prefix.ts";
import { runRound, type Round } from "./tool-round.ts";
import { traceModelCall, traceTurn } from "./tracing.ts";
import { applyRecord } from "./view.ts";
import { Turn, type TurnDeps, type TurnStart } from "./turn.ts";

/** Why a running turn is interrupted. */
export class Interruption extends Error {
  override readonly name = "Interruption";
}

export interface TurnSignals {
  /** Aborted with an Interruption when the user stops the turn. */
  stop: AbortSignal;
  /** True when this replica is handing over: the turn is left at its next commit, for the next leader. */
  handingOver(): boolean;
  /** Something has come in that may join this turn since it was asked last. */
  inputCame(): boolean;
}

/**
 * `left`: at a commit, for the next leader. `parked`: it waits for somebody else. `again`: what it waited for has come. `queued`:
 * it has ended and something waits behind it.
 */
export type TurnEnd = "left" | "parked" | "again" | "queued" | "finished";

const previewChars = 2_000;
const skippedText = "Skipped: a new message came in before this was started.";

/** Runs the turn to its end, until it has to wait, or to its next commit when handing over. */
export async function runTurn(deps: TurnDeps, start: TurnStart, signals: TurnSignals): Promise<TurnEnd> {
  const turn = new Turn(deps, start);
  const { turnId, inboxIds, attempt } = start.claimed;
  turn.say({ type: "turn.started", turnId, inboxIds, attempt });
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

async function endedBy(turn: Turn, error: unknown): Promise<TurnEnd> {
  if (error instanceof Interruption) return endWith(turn, stoppedByUser);
  if (error instanceof ModelError) {
    const { turnId } = turn.claimed;
    turn.deps.log.warn({ err: error, turn: turnId, failure: error.failure }, "model call failed");
    return endWith(turn, failureNotice(error));
  }
  throw error;
}

/** Ends the turn without a further model call, and says so to the hooks. */
async function endWith(turn: Turn, finish: Finish, spoken?: string | null): Promise<TurnEnd> {
  const { queued } = await turn.finish(finish, spoken);
  await reportEnd(turn, finish);
  return queued ? "queued" : "finished";
}

async function reportEnd(turn: Turn, finish: Finish): Promise<void> {
  const { deps, claimed, place, policy } = turn;
  const signal = AbortSignal.timeout(60_000);
  try {
    if (claimed.parent !== null) {
      const facts = {
        sessionId: claimed.sessionId,
        profile: policy.profile ?? "",
        exitReason: finish.exitReason,
        lastText: finish.text,
      };
      await deps.runHooks("SubagentStop", place, facts, signal);
    }
    if (finish.exitReason === "max_turns" || finish.exitReason === "max_budget") {
      await deps.runHooks("Notification", place, { type: "limit", message: finish.text }, signal);
    }
  } catch (error) {
    deps.log.warn({ err: error, turn: claimed.turnId }, "a hook about the end of a turn was given up");
  }
}

class Loop {
  readonly #turn: Turn;
  readonly #signals: TurnSignals;
  /** The provider found the last prompt too long: made shorter once. */
  #overflowed = false;
  /** A reply wants room before the next call. */
  #compactFirst = false;

  constructor(turn: Turn, signals: TurnSignals) {
    this.#turn = turn;
    this.#signals = signals;
  }

  async run(): Promise<TurnEnd> {
    const turn = this.#turn;
    const { stop } = this.#signals;
    if (turn.cancelRequested) throw new Interruption("stopped");
    const refused = await this.#begin();
    if (refused !== undefined) return endWith(turn, refused);
    for (;;) {
      const settled = await this.#settle();
      if (settled !== undefined) return settled;
      if (this.#signals.handingOver()) return "left";
      stop.throwIfAborted();
      const limit = limitReached(turn.policy.limits, turn.progress());
      if (limit !== undefined) return endWith(turn, limit);
      await this.#listen();
      await this.#makeRoom();
      const reply = await this.#askModel();
      const decision = await this.#decide(reply);
      faultPoint("agent.before_commit");
      const end = await turn.commit(reply, decision);
      faultPoint("agent.after_commit");
      if (end !== undefined) {
        if (decision.next === "finish") await reportEnd(turn, decision.finish);
        return end.queued ? "queued" : "finished";
      }
      this.#compactFirst = decision.next === "again" && decision.compact;
      // The word to stop may have been lost on its way; the store remembers it.
      if (turn.cancelRequested) throw new Interruption("stopped");
    }
  }

  /**
   * Before the first model call: the hooks of the session and of what was said. A leader that goes on after another one asks about
   * what nobody has answered yet once more, for the other one may not have come to it; what it has noted down is not said twice.
   */
  async #begin(): Promise<Finish | undefined> {
    const turn = this.#turn;
    const { claimed } = turn;
    if (claimed.openSteps.length > 0) return undefined;
    const contexts: string[] = [];
    if (claimed.modelSteps === 0) {
      contexts.push(...(await this.#beginHooks()));
      if (turn.news !== null) contexts.push(turn.news);
      const recalled = await this.#recall();
      if (recalled !== null) contexts.push(recalled);
    }
    const unanswered = turn.messages.slice(turn.messages.findLastIndex(({ role }) => role === "assistant") + 1);
    const refused = await this.#submit(unanswered.length, contexts);
    const noted = new Set(unanswered.flatMap(({ from, parts }) => (from === undefined ? [textOf(parts)] : [])));
    const fresh = contexts.filter((text) => !noted.has(text));
    if (fresh.length > 0 && refused === undefined) await turn.append(fresh.map(textNote), false, null);
    return refused;
  }

  /** What memory holds about what a person has said; a sub-agent looks for itself. */
  async #recall(): Promise<string | null> {
    const { deps, claimed, messages } = this.#turn;
    if (claimed.parent !== null) return null;
    const said = messages.flatMap(({ from, parts }) => (from?.origin === "user" ? [textOf(parts)] : []));
    return recall(deps, claimed.turnId, said.join("\n"));
  }

  /** What people have said aloud goes to the model in writing. */
  async #listen(): Promise<void> {
    const turn = this.#turn;
    const heard = await transcripts(turn.deps, turn.messages, this.#signals.stop);
    if (heard.length > 0) await turn.append(heard.map(textNote), false, null);
  }

  /** What the hooks of a session's or a sub-agent's beginning add. */
  async #beginHooks(): Promise<string[]> {
    const turn = this.#turn;
    const { deps, claimed, place, view } = turn;
    const contexts: string[] = [];
    const first = !view.messages.some((message) => message.turnId !== claimed.turnId) && view.record === null;
    if (first) {
      const started = await deps.runHooks("SessionStart", place, { source: "startup" }, this.#signals.stop);
      contexts.push(...started.contexts);
    }
    if (claimed.parent !== null) {
      const facts = {
        sessionId: claimed.sessionId,
        profile: turn.policy.profile ?? "",
        prompt: textOf(turn.messages[0]?.parts ?? []),
        background: claimed.parent.mode === "background",
      };
      const started = await deps.runHooks("SubagentStart", place, facts, this.#signals.stop);
      contexts.push(...started.contexts);
    }
    return contexts;
  }

  /** Shows the last `count` messages of people to the hooks; what they add goes to `contexts`. */
  async #submit(count: number, contexts: string[]): Promise<Finish | undefined> {
    const { deps, place, messages } = this.#turn;
    for (const message of messages.slice(-count)) {
      if (message.from === undefined) continue;
      const facts = { origin: message.from.origin, prompt: textOf(message.parts) };
      const verdict = await deps.runHooks("UserPromptSubmit", place, facts, this.#signals.stop);
      if (verdict.continue === false || verdict.decision === "deny") {
        const why = verdict.stopReason ?? verdict.reason ?? "it gave no reason";
        return { state: "failed", exitReason: "aborted", text: `A hook did not let this through: ${why}.` };
      }
      contexts.push(...verdict.contexts);
    }
    return undefined;
  }

  /** Brings open calls to their results and lets input join. A turn end when the turn has to stop here. */
  async #settle(): Promise<TurnEnd | undefined> {
    const turn = this.#turn;
    let skipped: string | null = null;
    const notes: Part[][] = [];
    if (turn.open.length > 0) {
      faultPoint("agent.before_tools");
      const round = await this.#round();
      turn.took(round);
      faultPoint("agent.after_tools");
      if (round.stop !== null) {
        return endWith(turn, {
          state: "cancelled",
          exitReason: "interrupted",
          text: `Stopped by a hook: ${round.stop}`,
        });
      }
      if (round.waitingFor.length > 0) {
        return (await turn.park(round.waitingFor, round.wakeAt)) ? "parked" : "again";
      }
      if (round.sleeps) return endWith(turn, { state: "done", exitReason: "end_turn", text: "(asleep)" }, null);
      if (round.skipped) skipped = skippedText;
      notes.push(...round.notes);
      if (repeatWarningDue(turn.messages)) {
        notes.push(note("repeated", "its result has not changed. Try something else, or say what keeps you from it."));
      }
    }
    const came = this.#signals.inputCame() || turn.steerable;
    if (!came && notes.length === 0 && skipped === null) return undefined;
    turn.steerable = false;
    const before = turn.messages.length;
    await turn.append(notes, came, skipped);
    return this.#joined(before);
  }

  /** What has joined is shown to the hooks as well. */
  async #joined(before: number): Promise<TurnEnd | undefined> {
    const turn = this.#turn;
    const contexts: string[] = [];
    const joined = turn.messages.length - before;
    const refused = joined > 0 ? await this.#submit(joined, contexts) : undefined;
    if (refused !== undefined) return endWith(turn, refused);
    if (contexts.length > 0) await turn.append(contexts.map(textNote), false, null);
    return undefined;
  }

  #round(): Promise<Round> {
    const turn = this.#turn;
    const { turnId } = turn.claimed;
    const context = {
      turn: turn.claimed,
      policy: turn.policy,
      overrides: turn.session.overrides,
      toolbox: turn.toolbox,
      place: turn.place,
      messages: turn.messages,
      say: turn.say.bind(turn),
      release: turn.release.bind(turn),
      steered: () => turn.steerable || this.#peekInput(),
      observer: {
        started: (step: { callId: string; tool: string }, input: string) =>
          turn.say({
            type: "tool.started",
            turnId,
            callId: step.callId,
            tool: step.tool,
            input: input.slice(0, previewChars),
          }),
        finished: (
          step: { callId: string; tool: string },
          result: { isError: boolean; content: string },
          durationMs: number,
        ) =>
          turn.say({
            type: "tool.finished",
            turnId,
            callId: step.callId,
            tool: step.tool,
            isError: result.isError,
            content: result.content.slice(0, previewChars),
            durationMs: Math.round(durationMs),
          }),
      },
    };
    return runRound(turn.deps, context, turn.open, this.#signals.stop);
  }

  /** Remembered until the calls that were launched have ended. */
  #peekInput(): boolean {
    if (!this.#signals.inputCame()) return false;
    this.#turn.steerable = true;
    return true;
  }

  async #makeRoom(cause: "check" | "overflow" = "check"): Promise<boolean> {
    const turn = this.#turn;
    const { claimed, deps } = turn;
    const compacted = await compact(
      this.#compactorDeps(),
      {
        sessionId: claimed.sessionId,
        turnId: claimed.turnId,
        running: true,
        view: turn.view,
        pending: turn.pending,
        prefix: turn.prefix,
        policy: turn.policy,
        provider: turn.model,
        headings: turn.headings,
        place: turn.place,
        cause: this.#compactFirst ? "overflow" : cause,
        say: turn.say.bind(turn),
      },
      this.#signals.stop,
    ).catch((error: unknown) => {
      if (isOutdated(error)) return "outdated" as const;
      throw error;
    });
    this.#compactFirst = false;
    if (compacted === "outdated") return this.#takeNewerView();
    if (compacted === null) return false;
    if (compacted.outcome === "flush_first") {
      await turn.append([textNote(compacted.words)], false, null);
      return false;
    }
    show(turn.view, compacted);
    deps.budgets.spend(claimed, compacted.costMicros);
    if (compacted.notice !== null) turn.say({ type: "notice", turnId: claimed.turnId, text: compacted.notice });
    await turn.renewPrefix();
    const started = await deps.runHooks("SessionStart", turn.place, { source: "compact" }, this.#signals.stop);
    if (started.contexts.length > 0) await turn.append(started.contexts.map(textNote), false, null);
    return true;
  }

  /** The conversation was made shorter beside this turn: what was made then is used. */
  async #takeNewerView(): Promise<boolean> {
    const turn = this.#turn;
    const { deps, claimed, view } = turn;
    const asked = { epoch: deps.epoch, sessionId: claimed.sessionId, knownSeq: view.seq };
    const { session } = await deps.bus.request(store.sessionView, asked, { timeoutMs: deps.storeTimeoutMs });
    if (session.view === null) return false;
    applyRecord(view, session.view);
    await turn.renewPrefix();
    return true;
  }

  #compactorDeps(): CompactorDeps {
    const { deps } = this.#turn;
    return { ...deps, settings: deps.settings.compaction };
  }

  async #askModel(): Promise<ModelReply> {
    const turn = this.#turn;
    faultPoint("agent.before_model");
    try {
      return await this.#call();
    } catch (error) {
      if (!(error instanceof ModelError) || error.failure !== "context_overflow" || this.#overflowed) throw error;
      // The model's window is smaller than was thought: once, with less.
      this.#overflowed = true;
      turn.deps.models.invalidateWindow(turn.model);
      if (!(await this.#makeRoom("overflow"))) throw error;
      return this.#call();
    }
  }

  async #call(): Promise<ModelReply> {
    const turn = this.#turn;
    const { deps, claimed, view } = turn;
    const { turnId } = claimed;
    const step = turn.nextStep;
    const request = this.#request();
    this.#checkPrefix(request);
    turn.shown = "";
    const observer = {
      delta: (delta: { type: "text" | "reasoning"; text: string }, attempt: number) => {
        if (delta.type === "text") {
          faultPoint("agent.mid_stream");
          turn.shown += delta.text;
        }
        turn.say({ type: `${delta.type}.delta`, turnId, step, attempt, text: delta.text });
      },
      retry: (retry: { attempt: number; delayMs: number; reason: string }) => {
        turn.shown = "";
        turn.say({ type: "model.retry", turnId, step, ...retry });
        deps.log.warn({ turn: turnId, step, ...retry }, "model call is tried again");
      },
    };
    const traced = { provider: turn.model.name, model: turn.model.model, sessionId: claimed.sessionId, step, request };
    const reply = await traceModelCall(traced, () =>
      callModel(turn.model, request, deps.retry, observer, this.#signals.stop),
    );
    if (reply.usage !== null) {
      const estimated =
        prefixTokens(turn.prefix) + estimateTokens(viewMessages(view.record, [...view.messages, ...turn.pending]));
      view.tokenRatio = Math.min(3, Math.max(0.3, promptTokens(reply.usage) / Math.max(1, estimated)));
    }
    return reply;
  }

  #request(): ModelRequest {
    const { view, pending, prefix, policy, deps, claimed, headings } = this.#turn;
    const shown = viewMessages(view.record, [...view.messages, ...pending]);
    const messages = deps.settings.context.history === "text_only" ? saidOnly(shown, claimed.turnId) : shown;
    return {
      system: prefix.system,
      tools: prefix.tools,
      messages: buildPrompt(messages, headings),
      maxOutputTokens: policy.maxOutputTokens,
      effort: policy.effort,
      thinking: policy.thinking,
      cacheTtl: claimed.parent === null ? "1h" : "5m",
    };
  }

  /** A prompt only grows at its end between two compactions; anything else is a bug, said aloud and survived. */
  #checkPrefix({ messages }: ModelRequest): void {
    const { view, prefix, deps, claimed } = this.#turn;
    const prints = fingerprints(prefix.hash, messages);
    // A new prefix begins anew: it is only taken where nothing is bound to the old one.
    const continues = deps.settings.context.history === "full" && view.sent[0] === prints[0];
    const changed = continues ? firstChange(view.sent, prints) : undefined;
    view.sent = prints;
    if (changed === undefined) return;
    deps.log.error(
      { session: claimed.sessionId, turn: claimed.turnId, block: changed },
      "the prompt does not continue the one before it",
    );
    deps.prefixBroken();
  }

  /** Something was said before this turn: the running turn alone is never made smaller for an answer's sake. */
  #hasPast(): boolean {
    const { view, claimed } = this.#turn;
    return view.messages.some(({ turnId }) => turnId !== claimed.turnId);
  }

  async #decide(reply: ModelReply): Promise<Decision> {
    const turn = this.#turn;
    const { agent, output, compaction } = turn.deps.settings;
    const rounds = roundsOf(turn.messages);
    const decision = decide(reply, {
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
    // For this event a no means: do not stop yet.
    if (verdict.continue === false || verdict.decision !== "deny") return decision;
    const words = [verdict.reason ?? "", ...verdict.contexts].filter((text) => text !== "").join("\n");
    return { next: "again", parts: decision.parts, note: note("stopHook", words), compact: false };
  }
}

function textNote(text: string): Part[] {
  return [{ type: "text", text }];
}
