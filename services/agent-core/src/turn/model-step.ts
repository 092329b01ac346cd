// One model call of a turn: builds the request from the log, compares it with the previous one, streams the reply. The
// provider's token counts correct later estimates.
import { faultPoint } from "@parley/chassis";
import type { Message } from "@parley/contracts";
import { estimateTokens } from "../compaction/estimate.ts";
import { callModel, type CallObserver } from "../model/call.ts";
import { promptTokens } from "../model/prices.ts";
import type { ModelReply, ModelRequest } from "../model/provider.ts";
import { buildPrompt } from "./context.ts";
import { prefixTokens } from "./prefix.ts";
import { fingerprints, firstChange } from "./sent-prefix.ts";
import { traceModelCall } from "./tracing.ts";
import type { Turn } from "./turn.ts";
import { callToolName, unwrapCalls } from "./wrapped-call.ts";

/** Rejects with a ModelError or with the signal's reason. Text streamed until then stays in `turn.shown`. */
export async function modelStep(turn: Turn, signal: AbortSignal): Promise<ModelReply> {
  const { deps, claimed, view, model, nextStep: step } = turn;
  const { all, requested } = turn.visible;
  const request = requestOf(turn, requested);
  checkPrefix(turn, request);
  turn.shown = "";
  const traced = { provider: model.name, model: model.model, sessionId: claimed.sessionId, step, request };
  const reply = await traceModelCall(traced, () => callModel(model, request, deps.retry, observerOf(turn), signal));
  if (reply.usage !== null) {
    const estimated = prefixTokens(turn.prefix) + estimateTokens(all);
    view.tokenRatio = Math.min(3, Math.max(0.3, promptTokens(reply.usage) / Math.max(1, estimated)));
  }
  const { toolbox } = turn;
  return { ...reply, parts: unwrapCalls(reply.parts, (name) => toolbox.nameOf(name) === callToolName) };
}

function requestOf({ prefix, policy, claimed, headings }: Turn, messages: readonly Message[]): ModelRequest {
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
function checkPrefix({ view, prefix, deps, claimed }: Turn, { messages }: ModelRequest): void {
  const prints = fingerprints(prefix.hash, messages);
  // A new prefix starts a new comparison: it is used only where nothing is bound to the old one.
  const continues = deps.settings.context.history === "full" && view.sent[0] === prints[0];
  const changed = continues ? firstChange(view.sent, prints) : undefined;
  view.sent = prints;
  if (changed === undefined) return;
  deps.log.error(
    { session: claimed.sessionId, turn: claimed.turnId, block: changed },
    "prompt prefix changed: the provider's cache is lost",
  );
  deps.prefixBroken();
}

function observerOf(turn: Turn): CallObserver {
  const { turnId } = turn.claimed;
  const step = turn.nextStep;
  return {
    delta: (delta, attempt) => {
      if (delta.type === "text") {
        faultPoint("agent.mid_stream");
        turn.shown += delta.text;
      }
      turn.say({ type: `${delta.type}.delta`, turnId, step, attempt, text: delta.text });
    },
    retry: (retry) => {
      turn.shown = "";
      turn.say({ type: "model.retry", turnId, step, ...retry });
      turn.deps.log.warn({ turn: turnId, step, ...retry }, "model call retried");
    },
  };
}
