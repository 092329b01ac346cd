// The webhook: Meta's verification of the address, and signed deliveries with several messages and statuses. It responds 200 only after the
// gateway has stored everything in a delivery; after any other status Meta repeats the delivery for up to 7 days.
import { parseJson } from "@parley/kit";
import type { FastifyInstance } from "fastify";
import { LRUCache } from "lru-cache";
import { hmacSha256, sameDigest, sha256 } from "../digest.ts";
import type { ChannelHost, InboundAction } from "../channel.ts";
import { skipUnstorable, store } from "../parsed.ts";
import { webhookRoute } from "../webhook-route.ts";
import type { Graph } from "./graph.ts";
import { parseMessage, type SeenMessage } from "./parse.ts";
import { windowEndedCode } from "./outcome.ts";
import { sendLateTemplate, targetOf, textMessage } from "./send.ts";
import { textOfCallback, type Template } from "./template.ts";
import { Delivery, Status, valuesOf, type Value } from "./update-schema.ts";
import { z } from "zod";

/** The largest delivery of the platform. */
const maxBodyBytes = 3 * 1024 * 1024;
const sendWithinMs = 8_000;
/** Presses and statuses that this replica has handled; a delivery may be repeated because of another message in it. */
const mostHandled = 5_000;

export interface Receiver {
  account: string;
  phoneNumberId: string;
  appSecret: string;
  verifyToken: string;
  graph: Graph;
  template: Template | null;
  /** Texts of recent messages by id. */
  seen: LRUCache<string, SeenMessage>;
}

const Verification = z.object({
  "hub.mode": z.literal("subscribe"),
  "hub.verify_token": z.string(),
  "hub.challenge": z.string().regex(/^\w{1,200}$/),
});

export function webhookRoutes(receiver: Receiver, app: FastifyInstance, host: ChannelHost): void {
  const { account, appSecret, verifyToken } = receiver;
  const url = `/channels/whatsapp/${account}/webhook`;
  const handled = new LRUCache<string, true>({ max: mostHandled });

  app.get(url, async (request, reply) => {
    const given = Verification.safeParse(request.query);
    if (!given.success || !sameDigest(sha256(given.data["hub.verify_token"]), sha256(verifyToken))) {
      return reply.code(403).send({ error: "The verify token is missing or wrong." });
    }
    return reply.code(200).type("text/plain").send(given.data["hub.challenge"]);
  });

  webhookRoute(app, host, {
    url,
    platform: "WhatsApp",
    maxBodyBytes,
    isAuthentic: (body, headers) => isSigned(body, headers["x-hub-signature-256"], appSecret),
    parse: (body) => Delivery.safeParse(parseJson(body)).data ?? null,
    receive: async (delivery) => {
      for (const value of valuesOf(delivery)) await handleValue(receiver, host, handled, value);
      return {};
    },
  });
}

/** Whether a signature belongs to exactly these bytes. */
function isSigned(body: Buffer, header: string | string[] | undefined, appSecret: string): boolean {
  const [, hex] = /^sha256=([0-9a-f]{64})$/i.exec(typeof header === "string" ? header : "") ?? [];
  return hex !== undefined && sameDigest(Buffer.from(hex, "hex"), hmacSha256(appSecret, body));
}

type Handled = LRUCache<string, true>;

/** In order, so that a message is never stored before an earlier one that failed. */
async function handleValue(receiver: Receiver, host: ChannelHost, handled: Handled, value: Value): Promise<void> {
  if (value.metadata.phone_number_id !== receiver.phoneNumberId) {
    host.log.info({ phoneNumberId: value.metadata.phone_number_id }, "delivery ignored: it is for another number");
    return;
  }
  for (const message of value.messages) await handleMessage(receiver, host, handled, message, value);
  for (const status of value.statuses) await handleStatus(receiver, host, handled, status);
}

async function handleMessage(
  receiver: Receiver,
  host: ChannelHost,
  handled: Handled,
  message: unknown,
  value: Value,
): Promise<void> {
  const { account, seen } = receiver;
  const parsed = parseMessage(message, value, { account, nowMs: Date.now(), seen: (id) => seen.get(id) });
  if (parsed.kind === "skipped") {
    host.log.info({ reason: parsed.reason }, "message skipped");
    return;
  }
  if (parsed.kind === "message") seen.set(parsed.draft.externalId, { text: parsed.draft.text, ofAgent: false });
  await skipUnstorable(host.log, {}, async () => {
    if (parsed.kind !== "action") return store(host, parsed);
    const { externalId } = parsed.action;
    if (handled.has(externalId)) return;
    await handlePress(receiver, host, parsed.action);
    handled.set(externalId, true);
  });
}

/** Runs a pressed button and tells the person the result. */
async function handlePress({ graph }: Receiver, host: ChannelHost, action: InboundAction): Promise<void> {
  const { text } = await host.act(action);
  const target = targetOf(action.conversation);
  if (target === null) return;
  const body = { messaging_product: "whatsapp", ...target, ...textMessage(text) };
  // Best effort: the decision is stored.
  await graph.post("messages", body, z.unknown(), AbortSignal.timeout(sendWithinMs));
}

/** Logs a failed message; after the end of the window the template is sent instead. */
async function handleStatus(
  { graph, template }: Receiver,
  host: ChannelHost,
  handled: Handled,
  raw: unknown,
): Promise<void> {
  const status = Status.safeParse(raw).data;
  if (status?.status !== "failed" || handled.has(`status:${status.id}`)) return;
  const [error] = status.errors;
  const [key] = (status.biz_opaque_callback_data ?? "").split("\n");
  host.log.error(
    { messageId: status.id, key, conversation: status.recipient_id, code: error?.code, reason: error?.title },
    "message not delivered: the platform reported a failure after it had accepted the message",
  );
  const late = textOfCallback(status.biz_opaque_callback_data);
  if (error?.code === windowEndedCode && template !== null && late !== null && status.recipient_id !== undefined) {
    const signal = AbortSignal.timeout(sendWithinMs);
    const outcome = await sendLateTemplate(graph, status.recipient_id, template, late, signal);
    if (outcome.state === "retry") throw new Error(`the template was not sent: ${outcome.reason}`);
    if (outcome.state !== "sent") host.log.error({ key, reason: outcome.reason }, "template not sent");
  }
  handled.set(`status:${status.id}`, true);
}
