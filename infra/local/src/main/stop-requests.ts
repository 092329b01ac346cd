// Ctrl-C and its like, counted: the first asks for a drain, the second for an end at once.

/**
 * One Ctrl-C may arrive more than once: the terminal sends it to everybody, and npm passes it on. Copies come within milliseconds
 * of each other; a person who means it twice takes longer than this.
 */
const ONE_REQUEST_MS = 250;

export interface StopRequests {
  /** Aborts at the first request. */
  readonly first: AbortSignal;
  /** Aborts at the second. */
  readonly second: AbortSignal;
  /** While set, Ctrl-C belongs to somebody else on the terminal; SIGTERM and SIGHUP still count. */
  ignoreInterrupts: boolean;
}

/** Counts requests from now on. `now` is in milliseconds. */
export function countStopRequests(
  source: NodeJS.EventEmitter = process,
  now: () => number = () => performance.now(),
): StopRequests {
  const first = new AbortController();
  const second = new AbortController();
  const requests: StopRequests = { first: first.signal, second: second.signal, ignoreInterrupts: false };
  let last = -Infinity;
  const count = (): void => {
    const at = now();
    const copy = at - last < ONE_REQUEST_MS;
    last = at;
    if (!first.signal.aborted) first.abort(new StopRequested());
    else if (!copy) second.abort(new StopRequested());
  };
  source.on("SIGINT", () => {
    if (!requests.ignoreInterrupts) count();
  });
  source.on("SIGTERM", count);
  source.on("SIGHUP", count);
  return requests;
}

export class StopRequested extends Error {
  override readonly name = "StopRequested";
}
