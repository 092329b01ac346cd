// Has outcomes written down: a result is offered to the store until it takes it, always the same one under the same key. One
// that it did not take in time is kept, for when the call is asked for again: what was done is never done twice.
import { WireError } from "@parley/contracts";
import { answerOf, resultOf, type CallAnswer, type Outcome } from "./outcomes.ts";
import type { RunningCall } from "./run-call.ts";
import type { Steps } from "./steps.ts";

/** Outcomes that are kept at most; the oldest goes first. */
const maxKept = 1_000;

type SettledCall = Pick<RunningCall, "request" | "claim">;

export interface SettlingOptions {
  steps: Steps;
  /** How long a result is offered to a store that does not answer. */
  settleMs: number;
  faultPoint: (name: string) => void;
}

export class Settling {
  readonly #options: SettlingOptions;
  readonly #kept = new Map<string, Outcome>();
  readonly #ending = new AbortController();

  constructor(options: SettlingOptions) {
    this.#options = options;
  }

  /** What came of an earlier run of the call that the store has not taken. */
  kept(key: string): Outcome | undefined {
    return this.#kept.get(key);
  }

  /** Resolves with what the store says counts: the first settlement. */
  async settle(key: string, { request, claim }: SettledCall, ended: Outcome): Promise<CallAnswer> {
    const { faultPoint, steps, settleMs } = this.#options;
    faultPoint("tool.before_settle");
    const deadline = AbortSignal.any([this.#ending.signal, AbortSignal.timeout(settleMs)]);
    const settlement = {
      grant: request.grant,
      opId: ended.opId,
      claim: claim(),
      state: ended.state,
      result: resultOf(request, ended.output),
    };
    this.#keep(key, ended);
    for (;;) {
      try {
        const step = await steps.settle(settlement, deadline);
        this.#kept.delete(key);
        faultPoint("tool.after_settle");
        return answerOf(step);
      } catch (error) {
        if (WireError.is(error, "UNAVAILABLE", "TIMEOUT") && !deadline.aborted) continue;
        // A refusal for good: nobody will ever want this result.
        if (WireError.is(error, "CONFLICT", "NOT_FOUND", "INVALID_INPUT", "FORBIDDEN", "FENCED"))
          this.#kept.delete(key);
        // The result is that of the runner that has the claim; the leader waits for it.
        if (WireError.is(error, "FENCED")) throw new WireError("UNAVAILABLE", error.message, { cause: error });
        throw error;
      }
    }
  }

  /** Offers nothing any more. */
  end(): void {
    this.#ending.abort();
  }

  #keep(key: string, ended: Outcome): void {
    this.#kept.set(key, ended);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > maxKept && oldest !== undefined) this.#kept.delete(oldest);
  }
}
