// When a server that failed is tried again. Pure.

export interface RestartTimes {
  /** Pause after the first failure; it doubles with each one in a row. */
  firstMs: number;
  maxMs: number;
  /** Failures in a row after which the server is left alone for a while. */
  breakAfter: number;
  breakMs: number;
}

export const restartTimes: RestartTimes = { firstMs: 250, maxMs: 30_000, breakAfter: 6, breakMs: 300_000 };

export interface Pause {
  ms: number;
  /** Calls are refused meanwhile; else they wait for the next attempt. */
  broken: boolean;
}

/** `failures`: in a row, at least one. */
export function pauseAfter(failures: number, times: RestartTimes): Pause {
  if (failures >= times.breakAfter) return { ms: times.breakMs, broken: true };
  return { ms: Math.min(times.maxMs, times.firstMs * 2 ** (failures - 1)), broken: false };
}
