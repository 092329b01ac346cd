// Counts Ctrl-C and termination signals: the first requests a drain, the second that the process ends without one.

/**
 * One Ctrl-C may arrive several times: the terminal sends it to the whole process group, and npm forwards it. Copies arrive within
 * milliseconds; a second key press takes longer than this.
 */
const repeatedSignalMs = 250;

export interface StopRequests {
  /** Aborts at the first request. */
  readonly first: AbortSignal;
  /** Aborts at the second. */
  readonly second: AbortSignal;
  /** While set, another process on the terminal handles Ctrl-C; SIGTERM and SIGHUP still count. */
  ignoreInterrupts: boolean;
}

/** Subscribes to the signals. `now` returns milliseconds. */
export function countStopRequests(
  source: NodeJS.EventEmitter = process,
  now: () => number = () => performance.now(),
): StopRequests {
  const first = new AbortController();
  const second = new AbortController();
  const requests: StopRequests = { first: first.signal, second: second.signal, ignoreInterrupts: false };
  let lastMs = -Infinity;
  const count = (): void => {
    const nowMs = now();
    const copy = nowMs - lastMs < repeatedSignalMs;
    lastMs = nowMs;
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

/** The reason of both abort signals: the user stopped the process, so nothing has failed. */
export class StopRequested extends Error {
  override readonly name = "StopRequested";
}
