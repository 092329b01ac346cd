// One run at a time of the same work.

/**
 * Runs `work` once at a time. A call during a run starts one more run after it. Every caller waits until a run that began after its call
 * has ended. After the signal aborts no run begins. An error ends the runs and rejects the callers.
 */
export function rerunWhileRequested(work: () => Promise<void>, signal: AbortSignal): () => Promise<void> {
  let requested = false;
  let running: Promise<void> | undefined;
  const loop = async () => {
    try {
      do {
        requested = false;
        await work();
      } while (requested && !signal.aborted);
    } finally {
      // In the same step as the last look at `requested`: a call in between would be lost.
      running = undefined;
    }
  };
  return () => {
    if (signal.aborted) return running ?? Promise.resolve();
    requested = true;
    return (running ??= Promise.resolve().then(loop));
  };
}
