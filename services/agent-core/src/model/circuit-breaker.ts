// Circuit breaker of a model, based on the outcome of its last calls.
//
//   closed    → calls are allowed; `failures` within `windowMs` open it
//   open      → no calls for `openMs`, or for as long as the provider requires
//   half open → one call probes: it closes the breaker or opens it again

export interface CircuitBreakerTimes {
  failures: number;
  windowMs: number;
  openMs: number;
}

/** A model with 5 failures within a minute is not called for 30 s. */
export const circuitBreakerTimes: CircuitBreakerTimes = { failures: 5, windowMs: 60_000, openMs: 30_000 };

export class CircuitBreaker {
  readonly #times: CircuitBreakerTimes;
  readonly #now: () => number;
  /** Times of the failures within the window, oldest first. */
  #failedAt: number[] = [];
  #openUntil: number | undefined;
  #probing = false;

  constructor(times: CircuitBreakerTimes = circuitBreakerTimes, now: () => number = () => performance.now()) {
    this.#times = times;
    this.#now = now;
  }

  /** Whether a call may start now. */
  get allows(): boolean {
    if (this.#openUntil === undefined) return true;
    return !this.#probing && this.#now() >= this.#openUntil;
  }

  /** A call starts; when the breaker is half open, it is the probe. */
  begin(): void {
    if (this.#openUntil !== undefined && this.allows) this.#probing = true;
  }

  succeeded(): void {
    this.#failedAt = [];
    this.#openUntil = undefined;
    this.#probing = false;
  }

  failed(): void {
    const now = this.#now();
    this.#failedAt = [...this.#failedAt.filter((at) => at > now - this.#times.windowMs), now];
    const probed = this.#probing;
    this.#probing = false;
    if (probed || this.#failedAt.length >= this.#times.failures) this.coolDown(this.#times.openMs);
  }

  /** A call ended without evidence about the model: stopped by the user, or refused because of its content. */
  undecided(): void {
    this.#probing = false;
  }

  /** Blocks calls for this long, regardless of their outcome. */
  coolDown(forMs: number): void {
    this.#openUntil = Math.max(this.#openUntil ?? 0, this.#now() + forMs);
  }
}
