// The other transport: signed HTTP requests to the app's request URLs (https://docs.slack.dev/authentication/verifying-requests-from-slack).
import { createHmac } from "node:crypto";
import type { Attempt, Delivery, Transport } from "./deliveries.ts";
import type { SlackState } from "./state.ts";

export class SignedRequests implements Transport {
  readonly #state: SlackState;
  readonly #url: string;
  readonly #secret: string;
  readonly #timeoutMs: number;

  constructor(state: SlackState, url: string, secret: string, timeoutMs: number) {
    this.#state = state;
    this.#url = url;
    this.#secret = secret;
    this.#timeoutMs = timeoutMs;
  }

  async deliver(delivery: Delivery, attempt: Attempt): Promise<string | null> {
    delivery.sends += 1;
    this.#state.changed();
    const isEvent = delivery.type === "events_api";
    const body = isEvent ? JSON.stringify(delivery.payload) : formOf(delivery);
    const retry: Record<string, string> =
      attempt.number === 0
        ? {}
        : { "x-slack-retry-num": String(attempt.number), "x-slack-retry-reason": attempt.reason ?? "" };
    try {
      const response = await fetch(this.#url, {
        method: "POST",
        headers: {
          "content-type": isEvent ? "application/json" : "application/x-www-form-urlencoded",
          ...signatureOf(body, this.#secret),
          ...retry,
        },
        body,
        redirect: "manual",
        signal: AbortSignal.timeout(this.#timeoutMs),
      });
      const answer = await response.text();
      if (!response.ok) return "http_error";
      delivery.acknowledgements += 1;
      delivery.answer = answer;
      return null;
    } catch {
      return "http_timeout";
    }
  }
}

/** The headers that prove a request; `atMs` is the time of the signature. */
export function signatureOf(body: string, secret: string, atMs = Date.now()): Record<string, string> {
  const timestamp = String(Math.floor(atMs / 1_000));
  const signature = createHmac("sha256", secret).update(`v0:${timestamp}:${body}`).digest("hex");
  return { "x-slack-request-timestamp": timestamp, "x-slack-signature": `v0=${signature}` };
}

function formOf({ type, payload }: Delivery): string {
  const fields = type === "interactive" ? { payload: JSON.stringify(payload) } : payload;
  return new URLSearchParams(fields as Record<string, string>).toString();
}
