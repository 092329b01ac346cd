// Slack: one app in one workspace, through the Web API and either socket mode or the Events API.
// Limits: https://docs.slack.dev/apis/web-api/rate-limits and https://docs.slack.dev/reference/methods/chat.postMessage
import { z } from "zod";
import { defineChannel, peopleSettings, secretVariable } from "./entry.ts";

export const slackChannel = defineChannel({
  name: "slack",
  title: "Slack",
  settings: z.strictObject({
    ...peopleSettings,
    token_env: secretVariable,
    /** `socket`: the gateway connects to Slack. `events`: Slack calls the gateway, which needs a public address. */
    mode: z.enum(["socket", "events"]).default("socket"),
    /** Contains the app-level token; required for `socket`. */
    app_token_env: secretVariable.optional(),
    /** Contains the secret with which Slack signs its requests; required for `events`. */
    signing_secret_env: secretVariable.optional(),
    /** Connections in socket mode, each with a lease of its own; Slack allows ten and sends an event to one of them. */
    connections: z.number().int().min(1).max(10).default(1),
    /** Answer a message of a channel in a thread below it, which is a conversation of its own; false: in the channel. */
    reply_in_thread: z.boolean().default(true),
    api_root: z.url().default("https://slack.com"),
  }),
  secrets: [
    { setting: "token_env", purpose: "the bot token of the app (begins with xoxb-)", required: true },
    {
      setting: "app_token_env",
      purpose: "the app-level token with the scope connections:write (begins with xapp-)",
      required: { setting: "mode", value: "socket" },
    },
    {
      setting: "signing_secret_env",
      purpose: "the app's signing secret",
      required: { setting: "mode", value: "events" },
    },
  ],
  capabilities: {
    // Slack renders Markdown itself. A markdown block takes 12,000 characters, but Slack advises 4,000 for a message and refuses edits above.
    text: { format: "markdown", maxLength: 4_000, lengthUnit: "utf16", lengthCountsMarkup: false },
    // One message a second in a conversation, short bursts are accepted; "several hundred" a minute in a workspace.
    rates: {
      account: { burst: 20, everyMs: 200 },
      conversations: [{ pattern: "", burst: 3, everyMs: 1_000 }],
    },
    supportsIdempotentSend: false,
    // A status of threads. It ends with the next message, or after two minutes.
    typing: true,
    typingEveryMs: 90_000,
    files: true,
    actions: true,
    // `chat.update` is limited to about 50 calls a minute for all conversations of a workspace.
    preview: { everyMs: 2_000 },
    acknowledgement: "eyes",
    // Clients keep `/` for commands that an app has registered.
    commandPrefix: "!",
  },
  connection: { setting: "mode", leased: "socket" },
  exampleAddress: "slack:team:C0123456789",
  setUp: [
    "Open https://api.slack.com/apps, choose *Create New App*, *From a manifest*, select the workspace and paste the manifest of [Slack](channels/slack.md).",
    'For `mode = "socket"`: under *Basic Information*, *App-Level Tokens*, generate a token with the scope `connections:write`: the secret for `app_token_env`.',
    "Under *Install App*, install the app to the workspace. Copy the *Bot User OAuth Token*: the secret for `token_env`.",
    'For `mode = "events"`: copy the *Signing Secret* under *Basic Information*: the secret for `signing_secret_env`. When the account is added, switch *Enable Socket Mode* off under *Socket Mode*, and enter `https://<host>/channels/slack/<account>/events` as request URL under *Event Subscriptions*, *Interactivity & Shortcuts* and, under *Slash Commands*, at `/parley`.',
    "Write a direct message to the app, or invite it to a channel with `/invite @Parley` and list the channel's id in `groups`: `npx parley channels logs slack:main` shows it after the invitation.",
  ],
  permissions: [
    "`chat:write`, `im:history`, `app_mentions:read`, `reactions:write`, `commands`: to read direct messages and mentions, and to answer.",
    "`channels:history`, `groups:history`, `mpim:history`: to see messages that do not mention the app, where it is a member.",
    "`channels:read`, `groups:read`: to be told when it is invited to a channel.",
    "`reactions:read`: reactions of people.",
    "`files:read`, `files:write`: files in both directions.",
    "`users:read`: names of people instead of their ids.",
  ],
});
export type SlackAccount = z.infer<typeof slackChannel.settings>;
