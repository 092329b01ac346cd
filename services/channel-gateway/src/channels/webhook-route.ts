// A webhook that a platform calls: it responds 200 only after the gateway has stored the delivery, so that the platform repeats any other one.
import { errorMessage } from "@parley/contracts";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { ChannelHost } from "./channel.ts";

export interface Webhook<Delivery> {
  url: string;
  platform: string;
  maxBodyBytes?: number;
  /** Whether the platform has sent exactly these bytes. */
  isAuthentic: (body: Buffer, headers: FastifyRequest["headers"]) => boolean;
  /** Null: the body is no delivery of the platform. */
  parse: (body: string, headers: FastifyRequest["headers"]) => Delivery | null;
  /** The body of the response; undefined: none. Rejects when the platform must repeat the delivery. */
  receive: (delivery: Delivery) => Promise<object | undefined>;
}

export function webhookRoute<Delivery>(app: FastifyInstance, host: ChannelHost, webhook: Webhook<Delivery>): void {
  const { url, platform, maxBodyBytes, isAuthentic, parse, receive } = webhook;
  const limits = maxBodyBytes === undefined ? {} : { bodyLimit: maxBodyBytes };
  app.post(url, limits, async ({ body, headers }, reply) => {
    const bytes = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body ?? null));
    if (!isAuthentic(bytes, headers)) {
      return reply.code(401).send({ error: "The signature or secret is missing, wrong or too old." });
    }
    const delivery = parse(bytes.toString("utf8"), headers);
    if (delivery === null) return reply.code(400).send({ error: `Not a delivery of ${platform}.` });
    try {
      return await reply.code(200).send(await receive(delivery));
    } catch (error) {
      host.log.warn({ reason: errorMessage(error) }, `delivery not stored: ${platform} will repeat it`);
      return reply.code(503).send({ error: "The delivery was not stored." });
    }
  });
}
