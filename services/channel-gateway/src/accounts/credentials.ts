// Checks the credentials of an account that the platform calls. Nothing else would report a wrong one before the first answer is sent.
import { setTimeout as delay } from "node:timers/promises";
import { backoffMs } from "@parley/kit";
import { AccountRejectedError, type ChannelAdapter, type ChannelHost } from "../channels/channel.ts";
import { withTimeout } from "../channels/transport.ts";

const checkWithinMs = 10_000;
/** Pauses while the platform does not respond. */
const pauses = { firstMs: 250, maxMs: 30_000 };
/** Pause after the platform has refused the credentials. */
const refusedPauseMs = 5 * 60_000;

/** Runs until the credentials are valid or `signal` aborts. `failed` is called with the error of each failed attempt. */
export async function checkCredentials(
  adapter: Pick<ChannelAdapter, "check">,
  host: Pick<ChannelHost, "report">,
  signal: AbortSignal,
  failed: (error: unknown) => void,
): Promise<void> {
  if (adapter.check === undefined) return;
  for (let failures = 1; !signal.aborted; failures += 1) {
    try {
      const found = await adapter.check(withTimeout(signal, checkWithinMs));
      if (found !== null) host.report({ state: "connected", as: found.as });
      return;
    } catch (error) {
      if (signal.aborted) return;
      failed(error);
      const pauseMs = error instanceof AccountRejectedError ? refusedPauseMs : backoffMs(failures, pauses);
      await delay(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
}
