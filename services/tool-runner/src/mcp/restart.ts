// The restart policy of a failed server: exponential backoff, then a longer break. Pure.

export interface RestartTimes {
  /** Pause after the first failure; it doubles with each consecutive failure. */
  firstMs: number;
  maxMs: number;
  /** Consecutive failures after which restarts pause for `breakMs`. */
  breakAfter: number;
  breakMs: number;
}

export const restartTimes: RestartTimes = { firstMs: 250, maxMs: 30_000, breakAfter: 6, breakMs: 300_000 };

export interface Pause {
  ms: number;
  /** True: calls are refused during the pause; otherwise they wait for the next attempt. */
  broken: boolean;
}

/** `failures`: consecutive failures, at least one. */
export function restartDelay(failures: number, times: RestartTimes): Pause {
  if (failures >= times.breakAfter) return { ms: times.breakMs, broken: true };
  return { ms: Math.min(times.maxMs, times.firstMs * 2 ** (failures - 1)), broken: false };
}
