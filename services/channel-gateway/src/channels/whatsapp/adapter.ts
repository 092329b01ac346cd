// The WhatsApp channel: one business number of the Cloud API. The platform calls any replica; sends are plain requests. This file assembles
// the parts; it depends neither on the store nor on access rules.
import { LRUCache } from "lru-cache";
import { z } from "zod";
import { whatsappChannel, type WhatsAppAccount } from "@parley/contracts";
import { AccountRejectedError, type ChannelAdapter } from "../channel.ts";
import { resultOf } from "../outcome.ts";
import { Graph } from "./graph.ts";
import { isCredentialRefusal, outcomeOf } from "./outcome.ts";
import { answerContext, type SeenMessage } from "./parse.ts";
import { sendPart, targetOf } from "./send.ts";
import { templateOf } from "./template.ts";
import { webhookRoutes } from "./webhook.ts";

const typingWithinMs = 5_000;
/** Texts of recent messages, for quotes: 2,000 of at most 4,096 characters. */
const mostSeen = 2_000;

export interface WhatsAppSecrets {
  token: string;
  appSecret: string;
  verifyToken: string;
}

const Number = z.object({ display_phone_number: z.string(), verified_name: z.string().optional() });

export function createWhatsApp(account: string, settings: WhatsAppAccount, secrets: WhatsAppSecrets): ChannelAdapter {
  const { api_root: apiRoot, api_version: version, phone_number_id: phoneNumberId } = settings;
  const graph = new Graph({ apiRoot, version, phoneNumberId, token: secrets.token });
  const template = templateOf(settings);
  const seen = new LRUCache<string, SeenMessage>({ max: mostSeen });

  return {
    channel: whatsappChannel.name,
    account,
    capabilities: whatsappChannel.capabilities,
    ownedConnection: false,
    async check(signal) {
      const answer = await graph.number(["display_phone_number", "verified_name"], Number, signal);
      if (answer.kind === "refused" && !isCredentialRefusal(answer)) {
        throw new AccountRejectedError(`phone_number_id refused by WhatsApp (${answer.reason})`);
      }
      const isRefused = answer.kind === "refused";
      const { display_phone_number: number, verified_name: name } = resultOf(
        isRefused ? { ...answer, status: 401 } : answer,
        "WhatsApp",
      );
      return { as: name === undefined ? number : `${number} (${name})` };
    },
    routes(app, host) {
      const { appSecret, verifyToken } = secrets;
      webhookRoutes({ account, phoneNumberId, appSecret, verifyToken, graph, template, seen }, app, host);
    },
    fetchFile: (handle, maxBytes, signal) => graph.download(handle, maxBytes, signal),
    send: (part, signal) =>
      sendPart({ graph, template, sent: (id, text) => seen.set(id, { text, ofAgent: true }) }, part, signal),
    async react({ conversation }, messageId, reaction, signal) {
      const target = targetOf(conversation);
      if (target === null) return { state: "dropped", reason: "not a WhatsApp conversation" };
      const content = { type: "reaction", reaction: { message_id: messageId, emoji: reaction ?? "" } };
      const body = { messaging_product: "whatsapp", ...target, ...content };
      const answer = await graph.post("messages", body, z.unknown(), signal);
      return answer.kind === "ok" ? { state: "sent", providerMessageId: null } : outcomeOf(answer, 0);
    },
    /** Marks the person's message as read and shows the indicator for up to 25 s, or until the next message. */
    async typing(address) {
      const context = answerContext(address.context);
      if (context === null) return;
      const body = {
        messaging_product: "whatsapp",
        status: "read",
        message_id: context.messageId,
        typing_indicator: { type: "text" },
      };
      // Best effort: a failure is ignored.
      await graph.post("messages", body, z.unknown(), AbortSignal.timeout(typingWithinMs));
    },
  };
}
