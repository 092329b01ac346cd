// IRC: one nick on one server.
import { z } from "zod";
import { defineChannel, peopleSettings, secretVariable } from "./entry.ts";

export const ircChannel = defineChannel({
  name: "irc",
  title: "IRC",
  settings: z.strictObject({
    ...peopleSettings,
    host: z.string(),
    port: z.number().int().min(1).max(65_535).default(6697),
    tls: z.boolean().default(true),
    nick: z
      .string()
      .regex(
        /^[A-Za-z[\]\\`_^{|}][A-Za-z0-9[\]\\`_^{|}-]{0,29}$/,
        "must be a nick: up to 30 letters, digits and some signs, such as my-parley, not beginning with a digit",
      ),
    password_env: secretVariable.optional(),
  }),
  secrets: [{ setting: "password_env", purpose: "the password of the nick's services account (SASL PLAIN)" }],
  questions: [
    { setting: "host", purpose: "the server, for example irc.libera.chat" },
    { setting: "nick", purpose: "the agent's nick" },
  ],
  capabilities: {
    // A line has 512 bytes with the sender, the target and the line end; 400 leave room for the longest names that most servers allow.
    text: { format: "plain", maxLength: 400, lengthUnit: "bytes", lengthCountsMarkup: false, singleLine: true },
    // Servers disconnect clients that send faster.
    rates: { account: { burst: 5, everyMs: 1_000 } },
    supportsIdempotentSend: false,
    typing: true,
    // A longer answer would fill the windows of everybody in a channel.
    messagesPerPage: 12,
    files: false,
    actions: false,
    // Clients keep `/` for their own commands.
    commandPrefix: "!",
  },
  connection: "leased",
  // IRC over TLS.
  ports: [6697],
  exampleAddress: "irc:net:#team",
  setUp: [
    "Register a nick with the network's services, if it has any (`/msg NickServ REGISTER`).",
    "The name of the server is `host`, and the nick is `nick`. For a registered nick, the password of the services account is the secret for `password_env`: `--secret-file password_env=<file>`.",
    "List the channels that the agent joins in `groups`: `--setting groups=#my-channel`.",
    "People are known by the account of the services: list them as `account:<name>` in `owners` and `allow_from`. A nick alone proves nothing, because anybody can take it.",
  ],
  permissions: ["To join each channel in `groups` and to speak there."],
});
export type IrcAccount = z.infer<typeof ircChannel.settings>;
