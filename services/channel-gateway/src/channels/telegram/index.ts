// The Telegram channel: one bot, either polling (one replica, leased) or by webhook (any replica). This file assembles the parts; it
// depends neither on the store nor on access rules.
import { z } from "zod";
import { telegramChannel, type TelegramAccount } from "@parley/contracts";
import type { ChannelAdapter, ChannelHost } from "../channel.ts";
import { rootOf } from "../json-api.ts";
import { adapterOf } from "../load.ts";
import { resultOf, throwIfLimited } from "../outcome.ts";
import { RememberedCall } from "../remembered-call.ts";
import { AccountSettingsError } from "../settings-check.ts";
import { createCall } from "./api.ts";
import { fetchFile } from "./download.ts";
import { poll } from "./poll.ts";
import { messageOperations, sendPart, targetOf } from "./send.ts";
import { Party, shownAs } from "./update-schema.ts";
import { webhookRoutes } from "./webhook.ts";

/** For calls that nothing depends on. */
const quietlyWithinMs = 5_000;

export const createAdapter = adapterOf(telegramChannel, createTelegram);

/** The secrets have the names of their settings. */
export function createTelegram(
  account: string,
  settings: TelegramAccount,
  { token_env: token = "", webhook_secret_env: webhookSecret = "" }: Readonly<Record<string, string>>,
): ChannelAdapter {
  if (!/^\d+:[\w-]+$/.test(token)) {
    const problem = `the token in ${settings.token_env} is not a bot token (digits, a colon, letters).`;
    throw new AccountSettingsError("telegram", account, problem);
  }
  const root = rootOf(settings.api_root);
  const call = createCall(`${root}/bot${token}`, token);
  const getMe = (signal: AbortSignal) => call("getMe", {}, Party, signal);
  const quietly = (method: string, parameters: Record<string, unknown>) =>
    call(method, parameters, z.unknown(), AbortSignal.timeout(quietlyWithinMs));
  /** Shows the commands in the menu of Telegram's clients. */
  const showCommands = ({ commands }: ChannelHost): void => {
    const menu = commands.map(({ name, summary }) => ({ command: name.slice(1), description: summary.slice(0, 256) }));
    void quietly("setMyCommands", { commands: menu });
  };
  const bot = { account, call, me: new RememberedCall(getMe), showCommands };

  const adapter: ChannelAdapter = {
    channel: telegramChannel.name,
    account,
    capabilities: telegramChannel.capabilities,
    ownedConnection: settings.mode === "poll",
    send: (part, signal) => sendPart(call, part, signal),
    ...messageOperations(call),
    fetchFile: (handle, maxBytes, signal) => fetchFile(call, `${root}/file/bot${token}`, handle, maxBytes, signal),
    check: async (signal) => ({ as: shownAs(resultOf(await getMe(signal), "Telegram")) }),
    async typing({ conversation }) {
      const target = targetOf(conversation);
      if (target !== null) throwIfLimited(await quietly("sendChatAction", { ...target, action: "typing" }));
    },
  };

  if (settings.mode === "webhook" && webhookSecret === "")
    throw new AccountSettingsError("telegram", account, 'mode = "webhook" requires webhook_secret_env.');
  if (settings.mode === "webhook") adapter.routes = (app, host) => webhookRoutes(bot, webhookSecret, app, host);
  else adapter.connect = (host, lease) => poll(bot, host, lease);
  return adapter;
}
