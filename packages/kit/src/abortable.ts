// Waits for a promise until an abort signal aborts.

/**
 * The outcome of `work`, or a rejection with the signal's reason as soon as the signal aborts. The work itself continues; its later
 * outcome is ignored. Without a signal the result is that of `work`.
 */
export async function abortable<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
    work.catch(() => undefined);
  }
}
