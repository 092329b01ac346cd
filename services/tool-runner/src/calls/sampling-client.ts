// Requests a model answer from the leader for a tool call that runs here. It waits for a leader that is starting. An answer that
// was in progress when its leader died is not requested again: it may have been paid for.
import { setTimeout as delay } from "node:timers/promises";
import type { Bus } from "@parley/bus";
import { faultPoint } from "@parley/chassis";
import {
  agentSample,
  agentSampleCancel,
  leaderChanged,
  newId,
  WireError,
  type InputOf,
  type ToolCallRequest,
} from "@parley/contracts";
import type { SampleResult, SamplingClient } from "../tool/requests.ts";

export interface SamplingClientDeps {
  bus: Bus;
  epoch: () => number;
}

/** Longer than any call may run, so that the call's own deadline applies first. */
const longestMs = 2 * 60 * 60 * 1_000;
/** How long to wait for a leader that accepts the call. */
const patienceMs = 30_000;
const pauseMs = 250;

export function createSamplingClient(
  { bus, epoch }: SamplingClientDeps,
  { turnId, n }: Pick<ToolCallRequest, "turnId" | "n">,
): SamplingClient {
  return {
    async sample(sample, signal) {
      faultPoint("tool.before_sample");
      const giveUpAt = performance.now() + patienceMs;
      for (;;) {
        signal.throwIfAborted();
        const sampled = await ask(bus, { ...sample, epoch: epoch(), id: newId(), turnId, n }, signal);
        if (sampled !== "not begun") return sampled;
        if (performance.now() >= giveUpAt) return refused("no leader was available to call the model");
        await delay(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted());
      }
    },
  };
}

/** `not begun`: no model was called, because there is no leader, the epoch is stale, or the leader has not accepted the call yet. */
async function ask(
  bus: Bus,
  input: InputOf<typeof agentSample>,
  signal: AbortSignal,
): Promise<SampleResult | "not begun"> {
  const { id, epoch } = input;
  const gone = new AbortController();
  const heard = bus.subscribe(leaderChanged, {}, (leader) => {
    if (leader.epoch > epoch) gone.abort();
  });
  const cancel = () => bus.publish(agentSampleCancel, { id });
  signal.addEventListener("abort", cancel, { once: true });
  try {
    return await bus.request(agentSample, input, {
      timeoutMs: longestMs,
      once: true,
      signal: AbortSignal.any([signal, gone.signal]),
    });
  } catch (error) {
    signal.throwIfAborted();
    if (WireError.is(error, "STALE_EPOCH", "UNAVAILABLE")) return "not begun";
    if (gone.signal.aborted) return refused("the leader changed during the model call");
    if (!WireError.is(error)) throw error;
    return refused(`the model could not be called: ${error.message}`);
  } finally {
    signal.removeEventListener("abort", cancel);
    heard.close();
  }
}

function refused(reason: string): SampleResult {
  return { status: "refused", reason };
}
