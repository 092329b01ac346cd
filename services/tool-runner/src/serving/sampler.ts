// Asks the leader for a model's answer, for the tool call that is held here. An answer that was being made by a leader that has died is not
// asked for again: it may have been paid for.
import type { Bus } from "@parley/bus";
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

export function samplerOf(
  { bus, epoch: current }: SamplerDeps,
  { turnId, n }: Pick<ToolCallRequest, "turnId" | "n">,
): Sampler {
  return {
    async sample(sample, signal) {
      signal.throwIfAborted();
      const id = newId();
      const epoch = current();
      const gone = new AbortController();
      const heard = bus.subscribe(leaderChanged, {}, (leader) => {
        if (leader.epoch > epoch) gone.abort();
      });
      const cancel = () => bus.publish(agentSampleCancel, { id });
      signal.addEventListener("abort", cancel, { once: true });
      try {
        const input = { ...sample, epoch, id, turnId, n };
        return await bus.request(agentSample, input, {
          timeoutMs: longestMs,
          signal: AbortSignal.any([signal, gone.signal]),
        });
      } catch (error) {
        signal.throwIfAborted();
        if (gone.signal.aborted || WireError.is(error, "STALE_EPOCH")) {
          return { status: "refused", reason: "the agent was restarted while the model was asked" };
        }
        if (!WireError.is(error)) throw error;
        return { status: "refused", reason: `the model could not be asked: ${error.message}` };
      } finally {
        signal.removeEventListener("abort", cancel);
        heard.close();
      }
    },
  };
}
