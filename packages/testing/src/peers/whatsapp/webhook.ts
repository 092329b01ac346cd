// Webhook requests: verification, signed bodies as the platform writes them, and redelivery until the answer is 2xx.
import { createHmac } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { WhatsAppNumber, WhatsAppState } from "./state.ts";

/** JSON as the platform writes and signs it: only ASCII, and slashes escaped. */
export function platformJson(value: unknown): string {
  return JSON.stringify(value)
    .replaceAll("/", "\\/")
    .replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function signatureOf(body: string | Buffer, appSecret: string): string {
  return `sha256=${createHmac("sha256", appSecret).update(body).digest("hex")}`;
}

interface Value {
  messages?: readonly { id: string }[];
  statuses?: readonly { id: string; status: string }[];
}

/** One request with a change for each value. */
export function deliver(state: WhatsAppState, values: readonly Value[], number: WhatsAppNumber = state.number): void {
  const metadata = {
    display_phone_number: number.displayPhoneNumber,
    phone_number_id: number.phoneNumberId,
  };
  const changes = values.map((value) => ({
    value: { messaging_product: "whatsapp", metadata, ...value },
    field: "messages",
  }));
  const ids = values.flatMap(({ messages = [], statuses = [] }) => [
    ...messages.map(({ id }) => id),
    ...statuses.map(({ id, status }) => `${id}:${status}`),
  ]);
  const body = { object: "whatsapp_business_account", entry: [{ id: number.businessAccountId, changes }] };
  state.pending.push({ body: platformJson(body), ids });
  state.changed();
}

export interface StatusChange {
  id: string;
  to: string;
  status: "sent" | "delivered" | "read" | "failed";
  errors?: readonly { code: number; title: string; message: string }[];
  callbackData: string | null;
}

export function deliverStatus(state: WhatsAppState, { id, to, status, errors, callbackData }: StatusChange): void {
  const shown = {
    id,
    status,
    timestamp: String(Math.floor(Date.now() / 1_000)),
    recipient_id: to,
    ...(errors === undefined ? {} : { errors }),
    ...(callbackData === null ? {} : { biz_opaque_callback_data: callbackData }),
  };
  deliver(state, [{ statuses: [shown] }]);
}

/** Delivers the pending requests in order, repeating each until the answer is 2xx. The real service repeats for up to 7 days. */
export async function deliverPending(
  state: WhatsAppState,
  appSecret: string,
  redeliveryMs: number,
  signal: AbortSignal,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    const { webhook } = state;
    const [next] = state.pending;
    if (webhook === null || next === undefined) {
      await nextChange(state, signal);
      continue;
    }
    for (const id of next.ids) state.deliveries.set(id, (state.deliveries.get(id) ?? 0) + 1);
    if (await taken(webhook, next.body, appSecret, signal)) {
      failures = 0;
      state.pending.splice(state.pending.indexOf(next), 1);
      state.changed();
      continue;
    }
    failures += 1;
    state.changed();
    await delay(Math.min(redeliveryMs * 2 ** (failures - 1), 1_000), undefined, { signal }).catch(() => {});
  }
}

async function taken(url: string, body: string, appSecret: string, signal: AbortSignal): Promise<boolean> {
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", "x-hub-signature-256": signatureOf(body, appSecret) },
      body,
      signal: AbortSignal.any([signal, AbortSignal.timeout(10_000)]),
    });
    await response.arrayBuffer();
    return response.ok;
  } catch {
    return false;
  }
}

async function nextChange(state: WhatsAppState, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = state.watch(resolve);
  signal.addEventListener("abort", () => resolve(), { once: true });
  await promise;
  stop();
}
