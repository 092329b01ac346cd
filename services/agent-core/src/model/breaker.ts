// Whether a model is worth asking, from how its last calls went: a circuit breaker.
//
//   closed    → asked freely; `failures` within `windowMs` open it
//   open      → not asked for `openMs`, or as long as the provider says
//   half open → one call probes: it closes the breaker, or opens it again

export interface BreakerTimes {
  failures: number;
  windowMs: number;
  openMs: number;
}

/** Source: the plan's section on providers. */
export const breakerTimes: BreakerTimes = { failures: 5, windowMs: 60_000, openMs: 30_000 };

export class Breaker {
  readonly #times: BreakerTimes;
  readonly #now: () => number;
  /** When it failed, oldest first; only what is still in the window. */
  #failedAt: number[] = [];
  #openUntil: number | undefined;
  #probing = false;

  constructor(times: BreakerTimes = breakerTimes, now: () => number = () => performance.now()) {
    this.#times = times;
    this.#now = now;
  }

  /** Whether a call may begin now. */
  get allows(): boolean {
    if (this.#openUntil === undefined) return true;
    return !this.#probing && this.#now() >= this.#openUntil;
  }

  /** A call begins; where the breaker is half open it is the probe. */
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

  /** A call ended without telling whether the model works: stopped by the user, or refused for what was in it. */
  undecided(): void {
    this.#probing = false;
  }

  /** Not asked for this long, whatever the calls were like. */
  coolDown(forMs: number): void {
    this.#openUntil = Math.max(this.#openUntil ?? 0, this.#now() + forMs);
  }
}
