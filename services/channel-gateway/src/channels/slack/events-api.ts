// Receives deliveries over HTTP: events, presses of buttons and slash commands, each signed by Slack. It responds 200 only after the gateway
// has stored the delivery; after any other status Slack delivers an event up to three more times. The header with the number of the retry
// decides nothing: the first try may have been lost.
import { errorMessage } from "@parley/contracts";
import { parseJson } from "@parley/kit";
import type { FastifyInstance } from "fastify";
import type { ChannelHost } from "../channel.ts";
import { hmacSha256, sameDigest } from "../digest.ts";
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
  app.post(`/channels/slack/${account}/events`, async (request, reply) => {
    const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
    const { "x-slack-request-timestamp": timestamp, "x-slack-signature": signature } = request.headers;
    if (!isSigned(body, String(timestamp), String(signature), secret, Date.now())) {
      return reply.code(401).send({ error: "The signature is missing, wrong or older than five minutes." });
    }
    const delivery = deliveryOf(body.toString("utf8"), request.headers["content-type"] ?? "");
    if (delivery === null) return reply.code(400).send({ error: "Not a delivery of Slack." });
    if (delivery.type === "url_verification") return reply.code(200).send({ challenge: delivery.payload });
    try {
      await take(delivery.type, delivery.payload);
    } catch (error) {
      host.log.warn({ reason: errorMessage(error) }, "event not stored: Slack will deliver it again");
      return reply.code(503).send({ error: "The delivery was not stored." });
    }
    // An empty answer to a command shows nothing.
    return reply.code(200).send();
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
