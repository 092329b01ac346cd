// One turn, from its claim to its end, resumed wherever an earlier leader left it.
//
//   settle  → open tool calls get their results
//   check   → cancelled? limit reached? handing over?
//   model   → one call, streamed; committed whole with the calls it asks for
//   branch  → tools: back to settle · paused: back to check · else the closing step has ended the turn
//
// What has been committed is never done again; a crash before a commit repeats that one call.
import type { Bus } from "@parley/bus";
import { faultPoint, type Logger } from "@parley/chassis";
import {
  newId,
  noUsage,
  sessionEvent,
  store,
  type ClaimedTurn,
  type Finish,
  type InputOf,
  type LiveEvent,
  type Message,
  type OutputOf,
  type Part,
  type SessionEvent,
  type ToolDescriptor,
  type ToolResult,
  type ToolStep,
} from "@parley/contracts";
import type { RetryTimes } from "../config.ts";
import { callModel } from "../model/call.ts";
import { ModelError, type ModelProvider, type ModelReply } from "../model/provider.ts";
import { buildPrompt } from "./context.ts";
import { decide, failureNotice, limitReached, type Decision, type Limits } from "./decide.ts";
import { runCalls, type ToolCallDeps } from "./tool-calls.ts";
import { extend, trim, type View } from "./view.ts";

export interface TurnDeps extends ToolCallDeps {
  bus: Bus;
  log: Logger;
  epoch: number;
  provider: ModelProvider;
  retry: RetryTimes;
  limits: Limits;
  systemPrompt: string;
  maxOutputTokens: number;
}

/** Why a running turn is interrupted. */
export class Interruption extends Error {
  override readonly name = "Interruption";
}

export interface TurnSignals {
  /** Aborted with an Interruption when the user stops the turn. */
  stop: AbortSignal;
  /** True when this replica is handing over: the turn is left at its next commit, for the next leader. */
  handingOver(): boolean;
}

/** How long an answer may wait to be sent. */
const replyExpiryMs = 24 * 60 * 60 * 1000;
const previewChars = 2_000;

/** `left`: at a commit, for the next leader. `queued`: it has ended and something waits behind it. */
export type TurnEnd = "left" | "queued" | "finished";

/** Runs the turn to its end, or to its next commit when handing over. */
export async function runTurn(
  deps: TurnDeps,
  claimed: ClaimedTurn,
  view: View,
  tools: ToolDescriptor[],
  signals: TurnSignals,
): Promise<TurnEnd> {
  const turn = new Turn(deps, claimed, view, tools);
  turn.say({ type: "turn.started", turnId: claimed.turnId, inboxIds: claimed.inboxIds, attempt: claimed.attempt });
  try {
    if (claimed.cancelRequested) throw new Interruption("stopped");
    for (;;) {
      await turn.settleOpenCalls(signals.stop);
      if (signals.handingOver()) return "left";
      signals.stop.throwIfAborted();
      const limit = limitReached(deps.limits, turn.progress());
      if (limit !== undefined) return await turn.finish(limit);
      const reply = await turn.askModel(signals.stop);
      const decision = decide(reply);
      faultPoint("agent.before_commit");
      const end = await turn.commit(reply, decision);
      faultPoint("agent.after_commit");
      if (end !== undefined) return end;
      // The word to stop may have been lost on its way; the store remembers it.
      if (turn.cancelRequested) throw new Interruption("stopped");
    }
  } catch (error) {
    if (error instanceof Interruption) {
      return await turn.finish({ state: "cancelled", exitReason: "interrupted", text: "Stopped." });
    }
    if (error instanceof ModelError) {
      deps.log.warn({ err: error, turn: claimed.turnId, failure: error.failure }, "model call failed");
      return await turn.finish(failureNotice(error));
    }
    throw error;
  }
}

class Turn {
  readonly #deps: TurnDeps;
  readonly #claimed: ClaimedTurn;
  readonly #view: View;
  readonly #tools: ToolDescriptor[];
  #nextStep: number;
  #modelSteps: number;
  #toolCalls: number;
  #open: ToolStep[];
  #results: ToolResult[] = [];
  /** As of the last commit. */
  cancelRequested = false;
  /** What has been streamed of a model call that is not committed, kept if it is cut. */
  #shown = "";

  constructor(deps: TurnDeps, claimed: ClaimedTurn, view: View, tools: ToolDescriptor[]) {
    this.#deps = deps;
    this.#claimed = claimed;
    this.#view = view;
    this.#tools = tools;
    this.#nextStep = claimed.nextStep;
    this.#modelSteps = claimed.modelSteps;
    this.#toolCalls = claimed.nextStep - 1 - claimed.modelSteps;
    this.#open = claimed.openSteps;
  }

  say(event: LiveEvent | SessionEvent): void {
    this.#deps.bus.publish(sessionEvent, event, { session: this.#claimed.sessionId });
  }

  progress() {
    return {
      modelSteps: this.#modelSteps,
      toolCalls: this.#toolCalls,
      elapsedMs: Date.now() - Date.parse(this.#claimed.startedAt),
    };
  }

  async settleOpenCalls(stop: AbortSignal): Promise<void> {
    if (this.#open.length === 0) return;
    faultPoint("agent.before_tools");
    const planned = this.#open.map((step) => {
      const tool = this.#tools.find((each) => each.name === step.tool);
      return { step, readOnly: tool?.readOnly ?? false, timeoutMs: tool?.timeoutMs ?? 30_000 };
    });
    const { turnId, sessionId } = this.#claimed;
    this.#results = await runCalls(
      this.#deps,
      sessionId,
      planned,
      {
        started: (step) =>
          this.say({
            type: "tool.started",
            turnId,
            callId: step.callId,
            tool: step.tool,
            input: step.input.slice(0, previewChars),
          }),
        finished: (step, result, durationMs) =>
          this.say({
            type: "tool.finished",
            turnId,
            callId: step.callId,
            tool: step.tool,
            isError: result.isError,
            content: result.content.slice(0, previewChars),
            durationMs: Math.round(durationMs),
          }),
      },
      stop,
    );
    this.#open = [];
    faultPoint("agent.after_tools");
  }

  async askModel(stop: AbortSignal): Promise<ModelReply> {
    const { deps, turnId, step } = { deps: this.#deps, turnId: this.#claimed.turnId, step: this.#nextStep };
    const pending: Message[] = this.#results.length === 0 ? [] : [this.#message(0, "tool", this.#results, null, "")];
    this.#shown = "";
    faultPoint("agent.before_model");
    const call = () =>
      callModel(
        deps.provider,
        {
          system: deps.systemPrompt,
          tools: this.#tools,
          messages: buildPrompt([...this.#view.messages, ...pending]),
          maxOutputTokens: deps.maxOutputTokens,
        },
        deps.retry,
        {
          delta: (delta, attempt) => {
            if (delta.type === "text") {
              faultPoint("agent.mid_stream");
              this.#shown += delta.text;
            }
            this.say({ type: `${delta.type}.delta`, turnId, step, attempt, text: delta.text });
          },
          retry: (retry) => {
            this.#shown = "";
            this.say({ type: "model.retry", turnId, step, ...retry });
            deps.log.warn({ turn: turnId, step, ...retry }, "model call is tried again");
          },
        },
        stop,
      );
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof ModelError) || error.failure !== "context_overflow") throw error;
      // The model's window is smaller than the view: once, with the older half left out.
      trim(this.#view, this.#view.chars - 1);
      deps.log.warn(
        { turn: turnId, step, chars: this.#view.chars },
        "the conversation is too long for the model; older turns are left out",
      );
      return call();
    }
  }

  /** Commits the reply whole; then the view, and those who watch, have it too. */
  async commit(reply: ModelReply, decision: Decision): Promise<TurnEnd | undefined> {
    const { turnId } = this.#claimed;
    const n = this.#nextStep;
    const finish = decision.next === "finish" ? decision.finish : null;
    const parts: Part[] = [
      ...decision.parts,
      { type: "finish", reason: reply.rawStopReason, at: new Date().toISOString() },
    ];
    const calls = decision.next === "tools" ? decision.calls.map((call) => this.#intent(call)) : [];
    const request: InputOf<typeof store.stepCommit> = {
      opId: newId(),
      epoch: this.#deps.epoch,
      turnId,
      n,
      model: reply.model,
      stopReason: reply.rawStopReason,
      usage: reply.usage ?? noUsage,
      parts,
      results: this.#results.length,
      toolCalls: calls,
      outgoing: finish === null ? [] : this.#outgoing(finish.text),
      finish,
    };
    const committed = await this.#deps.bus.request(store.stepCommit, request, { timeoutMs: this.#deps.storeTimeoutMs });
    this.#remember(committed, reply, parts, finish);
    this.#shown = "";
    this.#results = [];
    this.#nextStep = n + 1 + calls.length;
    this.#modelSteps += 1;
    this.#toolCalls += calls.length;
    this.#open = calls.map((call, index) => ({
      turnId,
      n: n + 1 + index,
      callId: call.callId,
      tool: call.tool,
      class: call.class,
      state: "intended",
      input: call.input,
      result: null,
      runner: null,
      startedAt: null,
    }));
    this.cancelRequested = committed.cancelRequested;
    if (finish === null) return undefined;
    return committed.queued ? "queued" : "finished";
  }

  /** Ends the turn without a further model call. */
  async finish(finish: Finish): Promise<TurnEnd> {
    faultPoint("agent.before_finish");
    const shown: Part[] =
      this.#shown === ""
        ? []
        : [
            { type: "text", text: this.#shown },
            { type: "finish", reason: "cancelled", at: new Date().toISOString() },
          ];
    const { events, queued } = await this.#deps.bus.request(
      store.turnFinish,
      {
        opId: newId(),
        epoch: this.#deps.epoch,
        turnId: this.#claimed.turnId,
        parts: shown,
        model: shown.length === 0 ? null : this.#deps.provider.model,
        unsettled: finish.state === "cancelled" ? "Cancelled" : "Interrupted before it was run.",
        outgoing: this.#outgoing(finish.text),
        finish,
      },
      { timeoutMs: this.#deps.storeTimeoutMs },
    );
    faultPoint("agent.after_finish");
    for (const event of events) {
      if (event.type === "message") extend(this.#view, [event.message], event.seq);
      else this.#view.seq = Math.max(this.#view.seq, event.seq);
      this.say(event);
    }
    return queued ? "queued" : "finished";
  }

  #remember(
    committed: OutputOf<typeof store.stepCommit>,
    reply: ModelReply,
    parts: Part[],
    finish: Finish | null,
  ): void {
    const { resultsSeq, messageSeq, finishSeq, usage, at } = committed;
    const messages: Message[] = [];
    if (resultsSeq !== null) messages.push(this.#message(resultsSeq, "tool", this.#results, null, at));
    messages.push(this.#message(messageSeq, "assistant", parts, reply.model, at));
    extend(this.#view, messages, finishSeq ?? messageSeq);
    trim(this.#view);
    for (const message of messages) this.say({ type: "message", seq: message.seq, message });
    if (finish !== null && finishSeq !== null) {
      const { turnId } = this.#claimed;
      this.say({ type: "turn.finished", seq: finishSeq, turnId, ...finish, usage });
    }
  }

  #intent(call: { id: string; name: string; input: string }) {
    const tool = this.#tools.find((each) => each.name === call.name);
    // An unknown tool is asked for all the same: the runner's answer names the valid ones.
    return { callId: call.id, tool: call.name, class: tool?.class ?? ("pure" as const), input: call.input };
  }

  #outgoing(text: string) {
    const { replyTo } = this.#claimed;
    return replyTo === null ? [] : [{ address: replyTo, text, expiresInMs: replyExpiryMs }];
  }

  #message(seq: number, role: Message["role"], parts: Part[], model: string | null, createdAt: string): Message {
    return { seq, role, turnId: this.#claimed.turnId, parts, model, createdAt };
  }
}
