// Receives deliveries over HTTP: events, presses of buttons and slash commands, each signed by Slack. It responds 200 only after the gateway
// has stored the delivery; after any other status Slack delivers an event up to three more times. The header with the number of the retry
// decides nothing: the first try may have been lost.
import { parseJson } from "@parley/kit";
import type { FastifyInstance } from "fastify";
import type { ChannelHost } from "../channel.ts";
import { hmacSha256, sameDigest } from "../digest.ts";
import { webhookRoute } from "../webhook-route.ts";
import type { Take } from "./socket.ts";

/** How far the clock of a request may be from ours: https://docs.slack.dev/authentication/verifying-requests-from-slack */
const maxSkewMs = 5 * 60_000;

export function eventRoutes(
  account: string,
  secret: string,
  app: FastifyInstance,
  host: ChannelHost,
  take: Take,
): void {
  webhookRoute(app, host, {
    url: `/channels/slack/${account}/events`,
    platform: "Slack",
    isAuthentic: (body, { "x-slack-request-timestamp": timestamp, "x-slack-signature": signature }) =>
      isSigned(body, String(timestamp), String(signature), secret, Date.now()),
    parse: (body, headers) => deliveryOf(body, headers["content-type"] ?? ""),
    receive: async ({ type, payload }) => {
      if (type === "url_verification") return { challenge: payload };
      await take(type, payload);
      // An empty answer to a command shows nothing.
      return undefined;
    },
  });
}

/** Whether Slack signed these bytes within the last five minutes. */
export function isSigned(body: Buffer, timestamp: string, signature: string, secret: string, nowMs: number): boolean {
  if (!/^\d{1,12}$/.test(timestamp) || !/^v0=[0-9a-f]{64}$/.test(signature)) return false;
  if (Math.abs(nowMs - Number(timestamp) * 1_000) > maxSkewMs) return false;
  return sameDigest(Buffer.from(signature.slice(3), "hex"), hmacSha256(secret, `v0:${timestamp}:`, body));
}

/** The delivery in the form of socket mode; null: the body is none. */
function deliveryOf(body: string, contentType: string): { type: string; payload: unknown } | null {
  if (contentType.startsWith("application/x-www-form-urlencoded")) {
    const form = Object.fromEntries(new URLSearchParams(body));
    const { payload } = form;
    return payload === undefined
      ? { type: "slash_commands", payload: form }
      : { type: "interactive", payload: parseJson(payload) };
  }
  const payload = parseJson(body);
  if (typeof payload !== "object" || payload === null || !("type" in payload)) return null;
  if (payload.type !== "url_verification") return { type: "events_api", payload };
  return { type: "url_verification", payload: "challenge" in payload ? payload.challenge : "" };
}
