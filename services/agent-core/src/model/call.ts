// One model call with its attempts: the only layer that retries. A watchdog aborts a silent stream, each retry is
// published as an event, and stopping the turn ends a delay at once.
import { setTimeout as delay } from "node:timers/promises";
import type { RetryTimes } from "../config.ts";
import { ModelError, type ModelDelta, type ModelProvider, type ModelReply, type ModelRequest } from "./provider.ts";
import { toTextOnlyRequest, dropToolCalls } from "./text-only.ts";

export interface CallObserver {
  delta(delta: ModelDelta, attempt: number): void;
  retry(retry: { attempt: number; delayMs: number; reason: string }): void;
}

/**
 * Attempts are counted per model of a chain: after a failover the next model is called at once and has all attempts.
 * Throws the last ModelError when attempts are exhausted or retrying is pointless, or the signal's reason.
 */
export async function callModel(
  provider: ModelProvider,
  request: ModelRequest,
  times: RetryTimes,
  observer: CallObserver,
  signal: AbortSignal,
): Promise<ModelReply> {
  const asked = toTextOnlyRequest(request);
  let failures = 0;
  for (let attempt = 1; ; attempt++) {
    try {
      const reply = await attemptCall(provider, asked, times, (delta) => observer.delta(delta, attempt), signal);
      return dropToolCalls(request, reply);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ModelError)) throw error;
      failures += 1;
      const reason = `${error.failure}: ${error.message}`;
      if (provider.moveOn?.(error, failures, times) !== undefined) {
        failures = 0;
        observer.retry({ attempt: attempt + 1, delayMs: 0, reason });
        continue;
      }
      const wanted = times.on?.includes(error.failure) ?? true;
      if (!error.retryable || !wanted || failures >= times.tries) throw error;
      const delayMs = backoffMs(failures, times, error.retryAfterMs, Math.random());
      // People decide about waiting longer than the cap.
      if (delayMs > times.capMs) throw error;
      observer.retry({ attempt: attempt + 1, delayMs, reason });
      await delay(delayMs, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }
}

/** 2 s·2^(n-1) plus up to 20 %, at most the cap, at least the provider's `retry-after`. */
export function backoffMs(
  attempt: number,
  times: RetryTimes,
  retryAfterMs: number | undefined,
  random: number,
): number {
  const exponential = times.baseMs * 2 ** (attempt - 1) * (1 + 0.2 * random);
  return Math.max(Math.min(exponential, times.capMs), retryAfterMs ?? 0);
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
