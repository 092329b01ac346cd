// Exponential backoff.

export interface BackoffOptions {
  /** The delay after the first failure. */
  readonly firstMs: number;
  /** The longest delay, jitter included. */
  readonly maxMs: number;
  /** The share of the delay that is added at random, 0 to 1; default 0. */
  readonly jitter?: number;
}

/**
 * The delay before the next attempt, in milliseconds: `firstMs` doubled after each further failure, plus jitter, at most `maxMs`.
 * `failures`: consecutive failures so far; below 1 counts as 1. `random`: a number in [0, 1).
 */
export function backoffMs(
  failures: number,
  { firstMs, maxMs, jitter = 0 }: BackoffOptions,
  random = jitter === 0 ? 0 : Math.random(),
): number {
  return Math.min(firstMs * 2 ** Math.max(0, failures - 1) * (1 + jitter * random), maxMs);
}
