// Updates that Telegram brings itself. It says 200 only when the gateway has kept the update; on anything else Telegram comes again.
// Registering the address with Telegram (setWebhook) is the operator's.
import { createHash, timingSafeEqual } from "node:crypto";
import { errorMessage } from "@parley/contracts";
import type { FastifyInstance } from "fastify";
import type { ChannelHost } from "../../channel.ts";
import type { Answer } from "./api.ts";
import type { Download } from "./download.ts";
import { takeIn } from "./intake.ts";
import { Update, type User } from "./updates.ts";

/** Telegram drops a slow answer after about ten seconds and asks again. */
const identifyWithinMs = 5_000;

interface Hook {
  account: string;
  secret: string;
  download: Download;
  identify: (signal: AbortSignal) => Promise<Answer<User>>;
}

export function webhookRoutes(hook: Hook, app: FastifyInstance, host: ChannelHost): void {
  const { account, secret, download } = hook;
  app.post(`/channels/telegram/${account}/webhook`, async (request, reply) => {
    const given = request.headers["x-telegram-bot-api-secret-token"];
    if (typeof given !== "string" || !sameSecret(given, secret)) {
      return reply.code(401).send({ error: "The secret token is missing or wrong." });
    }
    const update = Update.safeParse(jsonOf(request.body));
    if (!update.success) return reply.code(400).send({ error: "Not a Telegram update." });
    const me = await hook.identify(AbortSignal.timeout(identifyWithinMs));
    if (me.kind !== "ok") {
      const reason = me.kind === "refused" ? me.description : me.reason;
      host.log.warn({ channel: "telegram", account, reason }, "getMe failed; the update was not taken");
      return reply.code(503).send({ error: "Not ready." });
    }
    try {
      await takeIn(host, account, me.result, update.data, download);
    } catch (error) {
      const reason = errorMessage(error);
      host.log.warn({ channel: "telegram", account, updateId: update.data.update_id, reason }, "update was not kept");
      return reply.code(503).send({ error: "Not kept." });
    }
    return reply.code(200).send({});
  });
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function sameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

/** The body as the host hands it over: raw bytes, text, or parsed already. */
function jsonOf(body: unknown): unknown {
  if (typeof body !== "string" && !Buffer.isBuffer(body)) return body;
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
}
