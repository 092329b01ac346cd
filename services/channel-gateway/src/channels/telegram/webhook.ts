// Receives updates by webhook. It responds 200 only after the gateway has stored the update; after any other status Telegram retries.
// The operator registers the URL with Telegram (setWebhook).
import { errorMessage } from "@parley/contracts";
import { parseJson } from "@parley/kit";
import type { FastifyInstance } from "fastify";
import type { ChannelHost } from "../channel.ts";
import { sameDigest, sha256 } from "../digest.ts";
import type { Answer } from "../json-api.ts";
import { showCommands } from "./actions.ts";
import type { Call } from "./api.ts";
import { handleUpdate } from "./handle-update.ts";
import { Update, type User } from "./update-schema.ts";

/** Telegram gives up on a response after about 10 s and retries. */
const identifyWithinMs = 5_000;

interface Hook {
  account: string;
  call: Call;
  secret: string;
  identify: (signal: AbortSignal) => Promise<Answer<User>>;
}

export function webhookRoutes(hook: Hook, app: FastifyInstance, host: ChannelHost): void {
  const { account, secret } = hook;
  void showCommands(hook.call, host.commands);
  app.post(`/channels/telegram/${account}/webhook`, async (request, reply) => {
    const given = request.headers["x-telegram-bot-api-secret-token"];
    if (typeof given !== "string" || !sameDigest(sha256(given), sha256(secret))) {
      return reply.code(401).send({ error: "The secret token is missing or wrong." });
    }
    const update = Update.safeParse(jsonOf(request.body));
    if (!update.success) return reply.code(400).send({ error: "Not a Telegram update." });
    const me = await hook.identify(AbortSignal.timeout(identifyWithinMs));
    if (me.kind !== "ok") {
      host.log.warn({ channel: "telegram", account, reason: me.reason }, "update refused: getMe failed");
      return reply.code(503).send({ error: "Not ready: the bot could not be identified." });
    }
    try {
      await handleUpdate(host, hook, me.result, update.data);
    } catch (error) {
      const reason = errorMessage(error);
      host.log.warn(
        { channel: "telegram", account, updateId: update.data.update_id, reason },
        "update not stored: Telegram will retry",
      );
      return reply.code(503).send({ error: "The update was not stored." });
    }
    return reply.code(200).send({});
  });
}

/** Parses the body from the host: raw bytes, text, or an already parsed value. */
function jsonOf(body: unknown): unknown {
  return typeof body === "string" || Buffer.isBuffer(body) ? parseJson(body.toString("utf8")) : body;
}
