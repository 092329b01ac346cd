// Keeps the listeners of adapters open that receive by another protocol than HTTP: on every replica, without a lease.
import { setTimeout as delay } from "node:timers/promises";
import type { ChannelAdapter, ChannelHost } from "../channels/channel.ts";

/** Pauses between failed attempts, doubled from `first` up to `last`. */
const backoffMs = { first: 250, last: 15_000 };
/** After listening for at least this duration the backoff starts again from `first`. */
const goodListenerMs = 30_000;

/** Runs until `signal` aborts. `failed` is called with the error of each failed attempt. */
export async function keepListening(
  adapter: Pick<ChannelAdapter, "listen">,
  host: ChannelHost,
  signal: AbortSignal,
  failed: (error: unknown) => void,
): Promise<void> {
  let pauseMs = backoffMs.first;
  while (!signal.aborted) {
    const startedMs = performance.now();
    try {
      await adapter.listen?.(host, signal);
    } catch (error) {
      if (!signal.aborted) failed(error);
    }
    if (signal.aborted) return;
    if (performance.now() - startedMs > goodListenerMs) pauseMs = backoffMs.first;
    await delay(pauseMs, undefined, { signal }).catch(() => undefined);
    pauseMs = Math.min(pauseMs * 2, backoffMs.last);
  }
}
