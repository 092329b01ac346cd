// Asks the leader for a model's answer, for the tool call that is held here. A leader that is only just coming is waited for; an answer that
// was being made by one that has died is not asked for again: it may have been paid for.
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
  type OutputOf,
  type ToolCallRequest,
} from "@parley/contracts";

type Sample = Omit<InputOf<typeof agentSample>, "epoch" | "id" | "turnId" | "n">;
type Sampled = OutputOf<typeof agentSample>;

export interface Sampler {
  /** Rejects with the signal's reason; the model is not waited for then. */
  sample(sample: Sample, signal: AbortSignal): Promise<Sampled>;
}

export interface SamplerDeps {
  bus: Bus;
  epoch: () => number;
}

/** Longer than any call may take: the call's own time comes first. */
const longestMs = 2 * 60 * 60 * 1_000;
/** How long a leader may take to be there and to take up the call. */
const patienceMs = 30_000;
const pauseMs = 250;

export function samplerOf({ bus, epoch }: SamplerDeps, { turnId, n }: Pick<ToolCallRequest, "turnId" | "n">): Sampler {
  return {
    async sample(sample, signal) {
      faultPoint("tool.before_sample");
      const giveUpAt = performance.now() + patienceMs;
      for (;;) {
        signal.throwIfAborted();
        const sampled = await ask(bus, { ...sample, epoch: epoch(), id: newId(), turnId, n }, signal);
        if (sampled !== "not begun") return sampled;
        if (performance.now() >= giveUpAt) return refused("no agent was there to ask the model");
        await delay(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted());
      }
    },
  };
}

/** `not begun`: no model was asked, since nobody leads, or the leader is another one or has not taken up the call yet. */
async function ask(bus: Bus, input: InputOf<typeof agentSample>, signal: AbortSignal): Promise<Sampled | "not begun"> {
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
    if (gone.signal.aborted) return refused("the agent was restarted while the model was asked");
    if (!WireError.is(error)) throw error;
    return refused(`the model could not be asked: ${error.message}`);
  } finally {
    signal.removeEventListener("abort", cancel);
    heard.close();
  }
}

function refused(reason: string): Sampled {
  return { status: "refused", reason };
}
