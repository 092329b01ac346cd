// The Discord channel: one bot, one leased connection to the gateway for what people write, and REST for what is sent. This file assembles
// the parts; it depends neither on the store nor on access rules.
import { z } from "zod";
import { discordChannel, type DiscordAccount } from "@parley/contracts";
import { AccountRejectedError, type ChannelAdapter, type ChannelHost } from "../channel.ts";
import { AccountSettingsError } from "../settings-check.ts";
import { createCall, required } from "./api.ts";
import { holdConnection } from "./connect.ts";
import { fetchFile } from "./files.ts";
import { registerCommands } from "./interactions.ts";
import { User } from "./schema.ts";
import { messageOperations, sendPart } from "./send.ts";
import { Threads } from "./threads.ts";

const typingWithinMs = 5_000;
const registerWithinMs = 10_000;
/** https://discord.com/developers/docs/events/gateway#gateway-intents */
const intent = {
  guilds: 1 << 0,
  guildMessages: 1 << 9,
  guildReactions: 1 << 10,
  directMessages: 1 << 12,
  directReactions: 1 << 13,
  messageContent: 1 << 15,
} as const;
/** Flags of an application with the Message Content Intent: verified bots, and small ones. */
const messageContentFlags = (1 << 18) | (1 << 19);

export function createDiscord(account: string, settings: DiscordAccount, secrets: { token: string }): ChannelAdapter {
  const { token } = secrets;
  const refuse = (problem: string): never => {
    throw new AccountSettingsError("discord", account, problem);
  };
  if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) {
    refuse(`the token in ${settings.token_env} is not a bot token (three parts with dots).`);
  }
  const groups = settings.groups.filter((id) => id !== "*");
  const wrong = [...settings.owners, ...settings.allow_from, ...groups].find((id) => !/^\d{1,20}$/.test(id));
  if (wrong !== undefined) refuse(`"${wrong}" is not an id of Discord (only digits).`);
  const api = { apiRoot: settings.api_root, token };
  const call = createCall(api);
  const threads = new Threads(call, settings.groups);
  let known: User | null = null;
  let registered = false;
  const identify = async (signal: AbortSignal): Promise<User> => {
    known ??= required(await call({ method: "GET", path: "/users/@me" }, User, signal));
    return known;
  };
  const register = async (host: ChannelHost): Promise<void> => {
    const reason = await registerCommands(call, host.commands, AbortSignal.timeout(registerWithinMs));
    if (reason !== null) host.log.warn({ reason }, "slash commands not registered");
  };
  // A message that mentions the bot has its content without the privileged intent.
  const needsContent = !settings.require_mention || settings.group_context === true;
  const { messageContent, ...usual } = intent;
  const intents = Object.values(usual).reduce((sum, bit) => sum | bit, needsContent ? messageContent : 0);

  return {
    channel: discordChannel.name,
    account,
    capabilities: discordChannel.capabilities,
    ownedConnection: true,
    slots: settings.shards,
    sendsWithoutConnection: true,
    async connect(host, lease) {
      if (!registered) {
        registered = true;
        void register(host);
      }
      await holdConnection(
        { account, token, groups, intents, shards: settings.shards, call, threads, identify },
        host,
        lease,
      );
    },
    fetchFile: (handle, maxBytes, signal) => fetchFile({ ...api, call }, handle, maxBytes, signal),
    async check(signal) {
      const { username } = required(await call({ method: "GET", path: "/users/@me" }, User, signal));
      const application = z.object({ flags: z.number().default(0) });
      const { flags } = required(await call({ method: "GET", path: "/applications/@me" }, application, signal));
      if (needsContent && (flags & messageContentFlags) === 0) {
        throw new AccountRejectedError(
          "the Message Content Intent is off: switch it on in the Developer Portal under Bot → Privileged Gateway Intents, or set require_mention = true and group_context = false",
        );
      }
      return { as: username };
    },
    send: (part, signal) => sendPart(call, part, signal),
    ...messageOperations(call, discordChannel.capabilities.acknowledgement ?? ""),
    async typing({ conversation }) {
      if (!/^\d+$/.test(conversation)) return;
      // Best effort: a failure is ignored.
      const path = `/channels/${conversation}/typing`;
      await call({ method: "POST", path }, z.unknown(), AbortSignal.timeout(typingWithinMs));
    },
  };
}
