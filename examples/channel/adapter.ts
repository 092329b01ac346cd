// An example of a channel: a webhook for messages, and one HTTP request per message of an answer. The host authorizes people, splits and
// renders answers, and keeps order and rates. To use it, copy it to services/channel-gateway/src/channels/example as index.ts, and the entry
// to packages/contracts/src/channels, correct the imports, and add the entry to the list there.
import { createHash, timingSafeEqual } from "node:crypto";
import type { z } from "zod";
import type {
  ChannelAdapter,
  InboundDraft,
  OutboundPart,
  SendOutcome,
} from "../../services/channel-gateway/src/channels/channel.ts";
import { adapterOf } from "../../services/channel-gateway/src/channels/load.ts";
import { exampleChannel } from "./entry.ts";

type Settings = z.output<typeof exampleChannel.settings>;

/** The host loads the adapters of configured channels by this export. */
export const createAdapter = adapterOf(exampleChannel, createExample);

const sha256 = (text: string) => createHash("sha256").update(text).digest();

/** The secrets have the names of their settings. */
export function createExample(
  account: string,
  settings: Settings,
  { secret_env: secret = "" }: Readonly<Record<string, string>>,
): ChannelAdapter {
  const { name: channel, capabilities } = exampleChannel;

  /** The draft of a posted message; null when it is not one. */
  const draftOf = (body: unknown): InboundDraft | null => {
    const { id, person, text } = (body ?? {}) as Record<string, unknown>;
    if (typeof id !== "string" || typeof person !== "string" || typeof text !== "string") return null;
    return {
      externalId: id,
      conversation: person,
      contact: { id: person },
      direct: true,
      addressed: true,
      text,
      replyTo: { channel, account, conversation: person },
    };
  };

  return {
    channel,
    account,
    capabilities,
    ownedConnection: false,
    routes(app, host) {
      app.post(`/channels/${channel}/${account}/messages`, async (request, reply) => {
        const given = request.headers["x-secret"];
        if (typeof given !== "string" || !timingSafeEqual(sha256(given), sha256(secret))) return reply.code(401).send();
        const body = Buffer.isBuffer(request.body) ? (JSON.parse(request.body.toString()) as unknown) : request.body;
        const draft = draftOf(body);
        if (draft === null) return reply.code(400).send();
        // When this rejects, the answer is 500 and the chat server posts again.
        await host.accept(draft);
        return reply.code(200).send();
      });
    },
    async send({ address, text, idempotencyKey, attempts }: OutboundPart, signal: AbortSignal): Promise<SendOutcome> {
      if (text === null) return { state: "dropped", reason: "files are not supported" };
      const retry = { state: "retry" as const, afterMs: Math.min(1_000 * 2 ** attempts, 60_000) };
      if (signal.aborted) return { ...retry, reason: "cancelled before it was sent" };
      try {
        const response = await fetch(settings.url, {
          method: "POST",
          headers: { "content-type": "application/json", "x-secret": secret },
          body: JSON.stringify({ to: address.conversation, text: text.plain, key: idempotencyKey }),
          signal,
        });
        const { id } = (await response.json().catch(() => ({}))) as { id?: string };
        if (response.ok) return { state: "sent", providerMessageId: id ?? null };
        const reason = `status ${response.status}`;
        if (response.status === 429) {
          const seconds = Number(response.headers.get("retry-after") ?? "1");
          return { state: "retry", afterMs: seconds * 1_000, reason, scope: "account" };
        }
        return response.status >= 500 ? { ...retry, reason } : { state: "dropped", reason };
      } catch (error) {
        // The chat server drops a second message with the same key, so the host may send it again.
        return { ...retry, reason: error instanceof Error ? error.message : "failed" };
      }
    },
  };
}
