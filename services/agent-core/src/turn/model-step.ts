// One model call of a turn: builds the request from the log, compares it with the previous one, streams the reply. The
// provider's token counts correct later estimates.
import { faultPoint } from "@parley/chassis";
import type { Message, store } from "@parley/contracts";
import { estimateTokens, tokenRatio } from "../model/tokens.ts";
import { callModel, type CallObserver } from "../model/call.ts";
import { promptTokens } from "../model/prices.ts";
import type { ModelReply, ModelRequest } from "../model/provider.ts";
import { buildPrompt } from "../prompt/build-prompt.ts";
import { prefixTokens } from "../session/prefix.ts";
import { fingerprints, firstDifference, parametersOf, requestDigest } from "../session/prefix-check.ts";
import { traceModelCall } from "../telemetry/telemetry.ts";
import type { TurnDeps } from "./dependencies.ts";
import { headingsOf, outputTokensLeft, publish, visibleMessages, type TurnState } from "./state.ts";
import { callToolName, unwrapCalls } from "../prompt/indirect-calls.ts";

/** A reply, how long the call took with its retries, and until the first token; null: nothing was streamed. */
export interface TimedReply extends ModelReply {
  timing: { durationMs: number; firstTokenMs: number | null };
  /** To build the request of this call again. */
  request: store.RequestRecord;
}

/**
 * Rejects with a ModelError or with the signal's reason. `streamed` receives the text of this call so far, whenever it
 * changes.
 */
export async function modelStep(
  turn: TurnState,
  deps: TurnDeps,
  streamed: (text: string) => void,
  signal: AbortSignal,
): Promise<TimedReply> {
  const { claimed, view, model, nextStep: step } = turn;
  const { requested } = visibleMessages(deps, turn);
  const request = requestOf(turn, deps, requested);
  const prints = fingerprints(turn.prefix.hash, request.messages);
  const record = recordOf(turn, deps, request, prints);
  checkPrefix(turn, deps, prints);
  streamed("");
  const beganAt = performance.now();
  let firstTokenMs: number | null = null;
  const observer = observerOf(turn, deps, streamed);
  const timed: CallObserver = {
    ...observer,
    delta: (delta, attempt) => {
      firstTokenMs ??= Math.round(performance.now() - beganAt);
      observer.delta(delta, attempt);
    },
  };
  const traced = { provider: model.name, model: model.model, sessionId: claimed.sessionId, step, request };
  const reply = await traceModelCall(traced, () => callModel(model, request, deps.model.retry, timed, signal)).finally(
    () => deps.model.streaming.end(claimed.sessionId),
  );
  const timing = { durationMs: Math.round(performance.now() - beganAt), firstTokenMs };
  if (reply.usage !== null) {
    const estimated = prefixTokens(turn.prefix) + estimateTokens(requested);
    view.tokenRatio = tokenRatio(promptTokens(reply.usage), estimated);
  }
  const { toolbox } = turn;
  return {
    ...reply,
    timing,
    request: record,
    parts: unwrapCalls(reply.parts, (name) => toolbox.nameOf(name) === callToolName),
  };
}

function recordOf(
  turn: TurnState,
  deps: TurnDeps,
  request: ModelRequest,
  prints: readonly string[],
): store.RequestRecord {
  const parameters = parametersOf(request);
  return {
    prefixHash: turn.prefix.hash,
    viewVersion: turn.view.record?.version ?? 0,
    headings: headingsOf(deps, turn) ?? null,
    textOnly: deps.settings.context.history === "text_only",
    parameters,
    digest: requestDigest(prints, parameters),
  };
}

function requestOf(turn: TurnState, deps: TurnDeps, messages: readonly Message[]): ModelRequest {
  const { prefix, policy, claimed } = turn;
  return {
    system: prefix.system,
    tools: prefix.tools,
    messages: buildPrompt(messages, headingsOf(deps, turn)),
    maxOutputTokens: Math.min(policy.maxOutputTokens, outputTokensLeft(turn) ?? policy.maxOutputTokens),
    effort: policy.effort,
    thinking: policy.thinking,
    stopSequences: deps.settings.agent.stop_sequences,
    cacheTtl: claimed.parent === null ? "1h" : "5m",
  };
}

/** Between two compactions a prompt only grows at its end; anything else is a bug, which is logged and tolerated. */
function checkPrefix({ view, claimed }: TurnState, deps: TurnDeps, prints: string[]): void {
  // A new prefix starts a new comparison: it is used only where nothing is bound to the old one.
  const continues = deps.settings.context.history === "full" && view.sent[0] === prints[0];
  const changed = continues ? firstDifference(view.sent, prints) : undefined;
  view.sent = prints;
  if (changed === undefined) return;
  deps.log.error(
    { sessionId: claimed.sessionId, turnId: claimed.turnId, block: changed },
    "prompt prefix changed: the provider's cache is lost",
  );
  deps.model.metrics.prefixBroken();
}

function observerOf(turn: TurnState, deps: TurnDeps, streamed: (text: string) => void): CallObserver {
  const { turnId, sessionId } = turn.claimed;
  const { metrics, streaming } = deps.model;
  const step = turn.nextStep;
  streaming.begin(sessionId, { turnId, step, attempt: 1 });
  return {
    delta: (delta, attempt) => {
      const offset = streaming.add(sessionId, delta);
      const { text } = delta;
      if (delta.type === "tool_input") {
        const { id: callId, name: tool } = delta;
        publish(deps, turn, { type: "tool.input", turnId, step, attempt, callId, tool, text, offset });
        return;
      }
      if (delta.type === "text") {
        faultPoint("agent.mid_stream");
        metrics.textStreamed(turn.claimed);
        streamed(streaming.get(sessionId)?.text ?? "");
      }
      publish(deps, turn, { type: `${delta.type}.delta`, turnId, step, attempt, text, offset });
    },
    retry: (retry) => {
      streaming.begin(sessionId, { turnId, step, attempt: retry.attempt });
      streamed("");
      metrics.modelRetried();
      publish(deps, turn, { type: "model.retry", turnId, step, ...retry });
      const { attempt, delayMs, reason } = retry;
      deps.log.warn({ turnId, step, attempts: attempt - 1, waitMs: delayMs, reason }, "model call retried");
    },
  };
}
