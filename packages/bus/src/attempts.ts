// How often a request is sent: again while nobody serves it and, if it is idempotent, without a reply, until its deadline.
import { backoffMs } from "@parley/kit";
import type { WireError } from "@parley/contracts";
import type { RequestOptions } from "./request-options.ts";

const defaultTimeoutMs = 10_000;
const defaultAttemptMs = 2_500;
/** Minimum length of an attempt; with less time left, the previous attempt's error is more informative. */
const shortestTryMs = 100;

/** Pause before a retry: short at first, because a restarted service is back within a second, then longer, to limit the load. */
export function pauseMs(tries: number): number {
  return backoffMs(tries - 7, { firstMs: 25, maxMs: 1_000 }) * (0.75 + Math.random() / 2);
}

export class Attempts {
  readonly #deadline: number;
  readonly #attemptMs: number;
  readonly #idempotent: boolean;
  readonly #once: boolean;
  #tries = 0;
  #denial: WireError | undefined;

  constructor(idempotent: boolean, options: Pick<RequestOptions, "timeoutMs" | "attemptMs" | "once">) {
    this.#deadline = performance.now() + (options.timeoutMs ?? defaultTimeoutMs);
    this.#attemptMs = idempotent ? (options.attemptMs ?? defaultAttemptMs) : Number.POSITIVE_INFINITY;
    this.#idempotent = idempotent;
    this.#once = options.once === true;
  }

  /** How long the next attempt may take, in milliseconds. */
  nextMs(): number {
    return Math.min(this.#attemptMs, Math.max(1, this.#deadline - performance.now()));
  }

  /**
   * The pause in milliseconds before the next attempt. Throws the error of the request if there is none. `denied`: NATS has refused the
   * request. `closed`: nothing can be sent any more.
   */
  pauseAfter(failure: WireError, { denied, closed }: { denied: boolean; closed: boolean }): number {
    if (denied) this.#denial = failure;
    this.#tries += 1;
    const again = failure.code === "UNAVAILABLE" || (failure.code === "TIMEOUT" && this.#idempotent);
    const pause = pauseMs(this.#tries);
    if (again && !this.#once && !closed && performance.now() + pause + shortestTryMs <= this.#deadline) return pause;
    // A last attempt without a reply says less than an earlier denial.
    throw failure.code === "TIMEOUT" ? (this.#denial ?? failure) : failure;
  }
}
