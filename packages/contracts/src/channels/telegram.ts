// Telegram, through the Bot API. Limits: https://core.telegram.org/bots/faq#broadcasting-to-users
import { z } from "zod";
import { defineChannel, peopleSettings, secretVariable } from "./entry.ts";

export const telegramChannel = defineChannel({
  name: "telegram",
  title: "Telegram",
  settings: z.strictObject({
    ...peopleSettings,
    token_env: secretVariable,
    mode: z.enum(["poll", "webhook"]).default("poll"),
    /** Contains the secret that Telegram sends with each update; required for `webhook`. */
    webhook_secret_env: secretVariable.optional(),
    api_root: z.url().default("https://api.telegram.org"),
  }),
  secrets: [
    { setting: "token_env", purpose: "the bot's token from @BotFather", required: true },
    {
      setting: "webhook_secret_env",
      purpose: "the secret that Telegram sends with each update",
      required: { setting: "mode", value: "webhook" },
    },
  ],
  capabilities: {
    // 4,096 UTF-16 units after the markup has been parsed.
    text: { format: "inline_html", maxLength: 4_096, lengthUnit: "utf16", lengthCountsMarkup: false },
    // About 30 messages a second in all, one per second in a chat, 20 a minute in a group; short bursts are accepted.
    rates: {
      account: { burst: 30, everyMs: 34 },
      conversations: [
        { pattern: "^-", burst: 10, everyMs: 3_000 },
        { pattern: "", burst: 10, everyMs: 1_000 },
      ],
    },
    supportsIdempotentSend: false,
    typing: true,
    files: true,
    actions: true,
    // Edits count as messages: one per second in a chat.
    preview: { everyMs: 1_000 },
    // One of the emoji that every chat accepts: https://core.telegram.org/bots/api#reactiontypeemoji
    acknowledgement: "👀",
  },
  connection: { setting: "mode", leased: "poll" },
  contactIdIsConversationId: true,
  exampleAddress: "telegram:main:4711",
  setUp: [
    "Write `/newbot` to @BotFather in Telegram and choose a name. The answer contains the bot's token: the secret for `token_env`.",
    "Only for groups: write `/setprivacy` to @BotFather and choose *Disable* if the agent should see messages that do not mention it. Add the bot to the group and list the group's id in `groups`. It is a negative number; `npx parley channels logs telegram:main` shows it after the bot was added.",
    'For `mode = "webhook"`: choose a random text: the secret for `webhook_secret_env`. When the account is added, register it with the method `setWebhook`: `https://<host>/channels/telegram/<account>/webhook` as `url`, that text as `secret_token`, and `["message","edited_message","callback_query","my_chat_member","message_reaction"]` as `allowed_updates`, without which Telegram sends no reactions.',
  ],
  permissions: [
    "In a group: to be a member and to send messages.",
    "To see every message of a group: privacy mode disabled, or to be an administrator.",
  ],
});
export type TelegramAccount = z.infer<typeof telegramChannel.settings>;
