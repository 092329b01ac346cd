// Polls the liveness probe of a replica: a running process may be unable to work.

import { setTimeout as delay } from "node:timers/promises";

import { errorMessage } from "@parley/contracts";

export interface ProbeTimes {
  readonly periodMs: number;
  /** Timeout of one request. */
  readonly timeoutMs: number;
  /** Consecutive failures until a replica counts as stuck. */
  readonly failures: number;
}

const probeTimes: ProbeTimes = { periodMs: 5_000, timeoutMs: 5_000, failures: 3 };

/** Resolves with the last failure's reason after several consecutive failures of `/livez`; undefined when aborted. */
export async function whenStuck(
  healthPort: number,
  signal: AbortSignal,
  times: ProbeTimes = probeTimes,
): Promise<string | undefined> {
  for (let failures = 0; !signal.aborted;) {
    await delay(times.periodMs, undefined, { signal, ref: false }).catch(() => undefined);
    if (signal.aborted) return undefined;
    const problem = await problemOf(healthPort, signal, times.timeoutMs);
    failures = problem === undefined ? 0 : failures + 1;
    if (problem !== undefined && failures >= times.failures) return problem;
  }
  return undefined;
}

async function problemOf(healthPort: number, signal: AbortSignal, timeoutMs: number): Promise<string | undefined> {
  try {
    const response = await fetch(`http://127.0.0.1:${healthPort}/livez`, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    });
    const text = await response.text();
    return response.ok ? undefined : text.trim();
  } catch (error) {
    return `no answer from /livez: ${errorMessage(error)}`;
  }
}
