// One model call of a turn: builds the request from the log, compares it with the previous one, streams the reply. The
// provider's token counts correct later estimates.
import { faultPoint } from "@parley/chassis";
import type { Message } from "@parley/contracts";
import { estimateTokens } from "../compaction/estimate.ts";
import { callModel, type CallObserver } from "../model/call.ts";
import { promptTokens } from "../model/prices.ts";
import type { ModelReply, ModelRequest } from "../model/provider.ts";
import { buildPrompt } from "../prompt/build-prompt.ts";
import { prefixTokens } from "../session/prefix.ts";
import { fingerprints, firstDifference } from "../session/prefix-check.ts";
import { traceModelCall } from "../telemetry/tracing.ts";
import type { TurnState } from "./state.ts";
import { callToolName, unwrapCalls } from "../prompt/indirect-calls.ts";

/** Rejects with a ModelError or with the signal's reason. Text streamed until then stays in `turn.shown`. */
export async function modelStep(turn: TurnState, signal: AbortSignal): Promise<ModelReply> {
  const { deps, claimed, view, model, nextStep: step } = turn;
  const { all, requested } = turn.visible;
  const request = requestOf(turn, requested);
  checkPrefix(turn, request);
  turn.streamedText = "";
  const traced = { provider: model.name, model: model.model, sessionId: claimed.sessionId, step, request };
  const reply = await traceModelCall(traced, () => callModel(model, request, deps.retry, observerOf(turn), signal));
  if (reply.usage !== null) {
    const estimated = prefixTokens(turn.prefix) + estimateTokens(all);
    view.tokenRatio = Math.min(3, Math.max(0.3, promptTokens(reply.usage) / Math.max(1, estimated)));
  }
  const { toolbox } = turn;
  return { ...reply, parts: unwrapCalls(reply.parts, (name) => toolbox.nameOf(name) === callToolName) };
}

function requestOf({ prefix, policy, claimed, headings }: TurnState, messages: readonly Message[]): ModelRequest {
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

/** Between two compactions a prompt only grows at its end; anything else is a bug, which is logged and tolerated. */
function checkPrefix({ view, prefix, deps, claimed }: TurnState, { messages }: ModelRequest): void {
  const prints = fingerprints(prefix.hash, messages);
  // A new prefix starts a new comparison: it is used only where nothing is bound to the old one.
  const continues = deps.settings.context.history === "full" && view.sent[0] === prints[0];
  const changed = continues ? firstDifference(view.sent, prints) : undefined;
  view.sent = prints;
  if (changed === undefined) return;
  deps.log.error(
    { session: claimed.sessionId, turn: claimed.turnId, block: changed },
    "prompt prefix changed: the provider's cache is lost",
  );
  deps.prefixBroken();
}

function observerOf(turn: TurnState): CallObserver {
  const { turnId } = turn.claimed;
  const step = turn.nextStep;
  return {
    delta: (delta, attempt) => {
      if (delta.type === "text") {
        faultPoint("agent.mid_stream");
        turn.streamedText += delta.text;
      }
      turn.publish({ type: `${delta.type}.delta`, turnId, step, attempt, text: delta.text });
    },
    retry: (retry) => {
      turn.streamedText = "";
      turn.publish({ type: "model.retry", turnId, step, ...retry });
      turn.deps.log.warn({ turn: turnId, step, ...retry }, "model call retried");
    },
  };
}
