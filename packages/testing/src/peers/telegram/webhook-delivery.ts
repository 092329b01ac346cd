// Delivers updates to a webhook one after the other, and retries each until the answer is 2xx.
import { setTimeout as delay } from "node:timers/promises";
import type { TelegramState } from "./state.ts";

/** Runs until `signal` aborts. Telegram waits longer between retries; the fake begins with `redeliveryMs`. */
export async function deliverToWebhook(state: TelegramState, redeliveryMs: number, signal: AbortSignal): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    const { webhook } = state;
    const [update] = state.updates;
    if (webhook === null || update === undefined) {
      await nextChange(state, signal);
      continue;
    }
    state.deliveries.set(update.update_id, (state.deliveries.get(update.update_id) ?? 0) + 1);
    const taken = await fetch(webhook.url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(webhook.secretToken === null ? {} : { "x-telegram-bot-api-secret-token": webhook.secretToken }),
      },
      body: JSON.stringify(update),
      signal: AbortSignal.any([signal, AbortSignal.timeout(10_000)]),
    }).then(
      async (response) => {
        await response.arrayBuffer();
        return response.ok;
      },
      () => false,
    );
    if (taken) {
      failures = 0;
      state.confirmBefore(update.update_id + 1);
      continue;
    }
    failures += 1;
    state.changed();
    await delay(Math.min(redeliveryMs * 2 ** (failures - 1), 1_000), undefined, { signal }).catch(() => {});
  }
}

async function nextChange(state: TelegramState, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = state.watch(resolve);
  signal.addEventListener("abort", () => resolve(), { once: true });
  await promise;
  stop();
}
