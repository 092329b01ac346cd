// Keeps the listeners of adapters open that receive by another protocol than HTTP: on every replica, without a lease.
import { setTimeout as delay } from "node:timers/promises";
import type { ChannelAdapter, ChannelHost } from "../channels/channel.ts";
import { ReconnectPauses } from "../channels/reconnect-pauses.ts";

/** Runs until `signal` aborts. `failed` is called with the error of each failed attempt. */
export async function keepListening(
  adapter: Pick<ChannelAdapter, "listen">,
  host: ChannelHost,
  signal: AbortSignal,
  failed: (error: unknown) => void,
): Promise<void> {
  const pauses = new ReconnectPauses();
  while (!signal.aborted) {
    const startedMs = performance.now();
    try {
      await adapter.listen?.(host, signal);
    } catch (error) {
      if (!signal.aborted) failed(error);
    }
    if (signal.aborted) return;
    const pauseMs = pauses.after(performance.now() - startedMs, false);
    await delay(pauseMs, undefined, { signal }).catch(() => undefined);
  }
}
