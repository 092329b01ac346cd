// Settles outcomes in the store: retries the same result under the same operation id until the store accepts it. A result that was
// not accepted in time is stored here and settled when the call is requested again, so that no call runs twice.
import { WireError } from "@parley/contracts";
import { LRUCache } from "lru-cache";
import { answerOf, resultOf, type CallAnswer, type Outcome } from "./outcomes.ts";
import type { RunningCall } from "./run-call.ts";
import type { StepClient } from "./step-client.ts";

/** Maximum number of stored outcomes; the oldest is dropped first. */
const maxKept = 1_000;

type SettledCall = Pick<RunningCall, "request" | "claim">;

export interface SettlementOptions {
  steps: StepClient;
  /** How long settlement is retried while the store does not respond. */
  settleMs: number;
  faultPoint: (name: string) => void;
}

export class SettlementQueue {
  readonly #options: SettlementOptions;
  readonly #kept = new LRUCache<string, Outcome>({ max: maxKept });
  readonly #ending = new AbortController();

  constructor(options: SettlementOptions) {
    this.#options = options;
  }

  /** The unsettled outcome of an earlier run of the call, if any. */
  kept(key: string): Outcome | undefined {
    return this.#kept.get(key);
  }

  /** Resolves with the result that counts: the first settlement. */
  async settle(key: string, { request, claim }: SettledCall, ended: Outcome): Promise<CallAnswer> {
    const { faultPoint, steps, settleMs } = this.#options;
    faultPoint("tool.before_settle");
    const deadline = AbortSignal.any([this.#ending.signal, AbortSignal.timeout(settleMs)]);
    const settlement = {
      grant: request.grant,
      opId: ended.opId,
      claim: claim(),
      state: ended.state,
      result: resultOf(request, ended),
    };
    this.#kept.set(key, ended);
    for (;;) {
      try {
        const step = await steps.settle(settlement, deadline);
        this.#kept.delete(key);
        faultPoint("tool.after_settle");
        return answerOf(step);
      } catch (error) {
        if (WireError.is(error, "UNAVAILABLE", "TIMEOUT") && !deadline.aborted) continue;
        // A permanent rejection: this result will never be needed.
        if (WireError.is(error, "CONFLICT", "NOT_FOUND", "INVALID_INPUT", "FORBIDDEN", "FENCED"))
          this.#kept.delete(key);
        // Only the claim holder's result counts; the leader waits for it.
        if (WireError.is(error, "FENCED")) throw new WireError("UNAVAILABLE", error.message, { cause: error });
        throw error;
      }
    }
  }

  /** Stops all retries. */
  end(): void {
    this.#ending.abort();
  }
}
