// Receives updates by webhook. The operator registers the URL with Telegram (setWebhook).
import { parseJson } from "@parley/kit";
import type { FastifyInstance } from "fastify";
import type { ChannelHost } from "../channel.ts";
import { sameDigest, sha256 } from "../digest.ts";
import { resultOf } from "../outcome.ts";
import { webhookRoute } from "../webhook-route.ts";
import { handleUpdate, type Bot } from "./handle-update.ts";
import { Update } from "./update-schema.ts";

/** Telegram gives up on a response after about 10 s and retries. */
const identifyWithinMs = 5_000;

export function webhookRoutes(bot: Bot, secret: string, app: FastifyInstance, host: ChannelHost): void {
  bot.showCommands(host);
  webhookRoute(app, host, {
    url: `/channels/telegram/${bot.account}/webhook`,
    platform: "Telegram",
    isAuthentic: (_body, { "x-telegram-bot-api-secret-token": given }) =>
      typeof given === "string" && sameDigest(sha256(given), sha256(secret)),
    parse: (body) => Update.safeParse(parseJson(body)).data ?? null,
    receive: async (update) => {
      const me = resultOf(await bot.me.answer(AbortSignal.timeout(identifyWithinMs)), "Telegram");
      await handleUpdate(host, bot, me, update);
      return {};
    },
  });
}
