// The Telegram channel: one bot, either polling (one replica, leased) or by webhook (any replica). This file assembles the parts and
// caches the bot's identity; it depends neither on the store nor on access rules.
import { z } from "zod";
import { telegramChannel, type TelegramAccount } from "@parley/contracts";
import type { ChannelAdapter } from "../channel.ts";
import type { Answer } from "../json-api.ts";
import { resultOf } from "../outcome.ts";
import { AccountSettingsError } from "../settings-check.ts";
import { createCall } from "./api.ts";
import { fetchFile } from "./download.ts";
import { poll } from "./poll.ts";
import { messageOperations, sendPart, targetOf } from "./send.ts";
import { User } from "./update-schema.ts";
import { webhookRoutes } from "./webhook.ts";

const typingWithinMs = 5_000;

export interface TelegramSecrets {
  token: string;
  /** The secret that Telegram sends with each update; required in webhook mode. */
  webhookSecret?: string;
}

export function createTelegram(account: string, settings: TelegramAccount, secrets: TelegramSecrets): ChannelAdapter {
  if (!/^\d+:[\w-]+$/.test(secrets.token)) {
    const problem = `the token in ${settings.token_env} is not a bot token (digits, a colon, letters).`;
    throw new AccountSettingsError("telegram", account, problem);
  }
  const api = { apiRoot: settings.api_root, token: secrets.token };
  const call = createCall(api);

  let known: User | null = null;
  const identify = async (signal: AbortSignal): Promise<Answer<User>> => {
    if (known !== null) return { kind: "ok", result: known };
    const answer = await call("getMe", {}, User, signal);
    if (answer.kind === "ok") known = answer.result;
    return answer;
  };

  const bot = { account, call, identify };

  const adapter: ChannelAdapter = {
    channel: telegramChannel.name,
    account,
    capabilities: telegramChannel.capabilities,
    ownedConnection: settings.mode === "poll",
    send: (part, signal) => sendPart(call, part, signal),
    ...messageOperations(call),
    fetchFile: (handle, maxBytes, signal) => fetchFile({ ...api, call }, handle, maxBytes, signal),
    async check(signal) {
      const { username, id } = resultOf(await call("getMe", {}, User, signal), "Telegram");
      return { as: `@${username ?? id}` };
    },
    async typing({ conversation }) {
      const target = targetOf(conversation);
      if (target === null) return;
      // Best effort: a failure is ignored.
      await call("sendChatAction", { ...target, action: "typing" }, z.unknown(), AbortSignal.timeout(typingWithinMs));
    },
  };

  if (settings.mode === "poll") {
    adapter.connect = async (host, lease) => {
      known = null;
      await poll(bot, host, lease);
    };
    return adapter;
  }

  const { webhookSecret } = secrets;
  if (webhookSecret === undefined || webhookSecret === "") {
    throw new AccountSettingsError("telegram", account, 'mode = "webhook" requires webhook_secret_env.');
  }
  adapter.routes = (app, host) => {
    webhookRoutes(bot, webhookSecret, app, host);
  };
  return adapter;
}
