// Discord, through a bot: https://discord.com/developers/docs
import { z } from "zod";
import { defineChannel, peopleSettings, secretVariable } from "./entry.ts";

export const discordChannel = defineChannel({
  name: "discord",
  title: "Discord",
  settings: z.strictObject({
    ...peopleSettings,
    token_env: secretVariable,
    /** Connections to the gateway, one replica each; Discord requires one for every 2,500 servers. */
    shards: z.number().int().min(1).max(64).default(1),
    api_root: z.url().default("https://discord.com/api/v10"),
  }),
  secrets: [{ setting: "token_env", purpose: "the bot's token from the Developer Portal", required: true }],
  capabilities: {
    // 2,000 characters with the markup. Discord counts code points; UTF-16 units are never fewer.
    text: { format: "markdown", maxLength: 2_000, lengthUnit: "utf16", lengthCountsMarkup: true },
    // Discord documents 50 calls a second in all and reports the limit of a channel in headers, usually 5 messages in 5 s.
    rates: { account: { burst: 40, everyMs: 25 }, conversations: [{ pattern: "", burst: 5, everyMs: 1_000 }] },
    // By `nonce` with `enforce_nonce`, for "a few minutes".
    supportsIdempotentSend: true,
    typing: true,
    // The indicator disappears after 10 s.
    typingEveryMs: 8_500,
    files: true,
    filesWithText: true,
    actions: true,
    preview: { everyMs: 1_500 },
    acknowledgement: "👀",
  },
  connection: "leased",
  exampleAddress: "discord:main:1234567890123456789",
  setUp: [
    "Open https://discord.com/developers/applications, choose *New Application* and give it a name.",
    "Under *Bot*, choose *Reset Token* and copy the token, which is shown once: the secret for `token_env`.",
    "Only for `require_mention = false` or `group_context = true`: under *Bot*, switch on *Message Content Intent*.",
    "Under *Installation*, choose *Guild Install* with the scopes `bot` and `applications.commands` and the permissions *View Channels*, *Send Messages*, *Send Messages in Threads*, *Attach Files*, *Read Message History* and *Add Reactions*, open the install link and add the bot to your server. A direct conversation with the bot is possible as soon as you share a server with it.",
    "Only for channels of the server: in your own Discord settings under *Advanced*, switch on *Developer Mode*. A right click on a person or channel then offers *Copy User ID* or *Copy Channel ID*.",
    "List the ids of these channels, not of the server, in `groups`. Threads belong to their channel. With your own id in `owners` you need no pairing code.",
    "Write to the bot in a direct conversation, or mention it in a channel.",
  ],
  permissions: [
    "The permissions of step 4, in each channel of `groups`.",
    "The privileged *Message Content Intent*, only for `require_mention = false` or `group_context = true`.",
  ],
});
export type DiscordAccount = z.infer<typeof discordChannel.settings>;
