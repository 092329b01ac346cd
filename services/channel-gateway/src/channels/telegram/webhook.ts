// Receives updates by webhook. The operator registers the URL with Telegram (setWebhook).
import { parseJson } from "@parley/kit";
import type { FastifyInstance } from "fastify";
import type { ChannelHost } from "../channel.ts";
import { sameDigest, sha256 } from "../digest.ts";
import type { Answer } from "../json-api.ts";
import { resultOf } from "../outcome.ts";
import { webhookRoute } from "../webhook-route.ts";
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
  void showCommands(hook.call, host.commands);
  webhookRoute(app, host, {
    url: `/channels/telegram/${hook.account}/webhook`,
    platform: "Telegram",
    isAuthentic: (_body, { "x-telegram-bot-api-secret-token": given }) =>
      typeof given === "string" && sameDigest(sha256(given), sha256(hook.secret)),
    parse: (body) => Update.safeParse(parseJson(body)).data ?? null,
    receive: async (update) => {
      const me = resultOf(await hook.identify(AbortSignal.timeout(identifyWithinMs)), "Telegram");
      await handleUpdate(host, hook, me, update);
      return {};
    },
  });
}
