// One model call with its attempts: the only layer that retries. A watchdog aborts a silent stream, each retry is
// published as an event, and stopping the turn ends a delay immediately.
import { setTimeout as delay } from "node:timers/promises";
import { backoffMs } from "@parley/kit";
import { type ModelDelta, ModelError, type ModelProvider, type ModelReply, type ModelRequest } from "./provider.ts";
import type { RetryTimes } from "../config.ts";

const inWords = "Answer this in plain text. Call no tool.";

/** The request with the instruction at its very end, so that nothing sent before changes. */
function toTextOnlyRequest(request: ModelRequest): ModelRequest {
  if (request.toolChoice !== "none" || request.tools.length === 0) return request;
  const last = request.messages.at(-1);
  if (last?.role !== "user") return request;
  const extended = { ...last, parts: [...last.parts, { type: "text" as const, text: inWords }] };
  return { ...request, messages: [...request.messages.slice(0, -1), extended] };
}

/** The reply without calls if a text answer was requested. */
function dropToolCalls(request: ModelRequest, reply: ModelReply): ModelReply {
  if (request.toolChoice !== "none") return reply;
  const stopReason = reply.stopReason === "tool_use" ? "end_turn" : reply.stopReason;
  return { ...reply, stopReason, parts: reply.parts.filter((part) => part.type !== "tool_call") };
}

export interface CallObserver {
  delta(delta: ModelDelta, attempt: number): void;
  retry(retry: { attempt: number; tries: number; delayMs: number; reason: string }): void;
}

/**
 * Attempts are counted per model of a chain: after a failover the next model is called immediately and has all attempts.
 * Throws the last ModelError when attempts are exhausted or retrying is pointless, or the signal's reason.
 */
export async function callModel(
  provider: ModelProvider,
  request: ModelRequest,
  times: RetryTimes,
  observer: CallObserver,
  signal: AbortSignal,
): Promise<ModelReply> {
  const textOnly = toTextOnlyRequest(request);
  let failures = 0;
  for (let attempt = 1; ; attempt++) {
    try {
      const reply = await attemptCall(provider, textOnly, times, (delta) => observer.delta(delta, attempt), signal);
      return dropToolCalls(request, reply);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ModelError)) throw error;
      failures += 1;
      const reason = `${error.failure}: ${error.message}`;
      if (provider.moveOn?.(error, failures, times) !== undefined) {
        failures = 0;
        observer.retry({ attempt: attempt + 1, tries: times.tries, delayMs: 0, reason });
        continue;
      }
      const wanted = times.on?.includes(error.failure) ?? true;
      if (!error.retryable || !wanted || failures >= times.tries) throw error;
      const delayMs = retryDelayMs(failures, times, error.retryAfterMs);
      // People decide about waiting longer than the cap.
      if (delayMs > times.capMs) throw error;
      observer.retry({ attempt: attempt + 1, tries: times.tries, delayMs, reason });
      await delay(delayMs, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }
}

/** 2 s·2^(n-1) plus up to 20 %, at most the cap, at least the provider's `retry-after`. */
export function retryDelayMs(
  failures: number,
  { baseMs: firstMs, capMs: maxMs }: Pick<RetryTimes, "baseMs" | "capMs">,
  retryAfterMs = 0,
  random = Math.random(),
): number {
  return Math.max(backoffMs(failures, { firstMs, maxMs, jitter: 0.2 }, random), retryAfterMs);
}

async function attemptCall(
  provider: ModelProvider,
  request: ModelRequest,
  times: RetryTimes,
  onDelta: (delta: ModelDelta) => void,
  signal: AbortSignal,
): Promise<ModelReply> {
  const quiet = new AbortController();
  const cut = () => quiet.abort(new ModelError("stalled", "the model's stream stalled"));
  const watchdog = setTimeout(cut, times.firstByteMs);
  let idle: NodeJS.Timeout | undefined;
  const alive = () => {
    clearTimeout(watchdog);
    if (idle === undefined) idle = setTimeout(cut, times.idleMs);
    else idle.refresh();
  };
  try {
    return await provider.stream(request, { delta: onDelta, alive }, AbortSignal.any([signal, quiet.signal]));
  } catch (error) {
    signal.throwIfAborted();
    throw quiet.signal.aborted ? quiet.signal.reason : error;
  } finally {
    clearTimeout(watchdog);
    clearTimeout(idle);
  }
}
