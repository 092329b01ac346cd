// Accounts on chat platforms, and inbound webhooks.
import { z } from "zod";
import { NamedRule } from "./permissions.ts";

const dmPolicy = z.enum(["pairing", "allowlist", "open", "disabled"]).default("pairing");
const envName = z
  .string()
  .regex(/^PARLEY_CHANNEL_[A-Z0-9_]+$/, "must be the name of an environment variable that begins with PARLEY_CHANNEL_");

const people = {
  /** Platform ids of the owner's accounts: they share the owner's thread. */
  owners: z.array(z.string()).default([]),
  /** Platform ids of people who may talk to the agent. Empty: only the owners and people admitted by pairing. */
  allow_from: z.array(z.string()).default([]),
  dm_policy: dmPolicy,
  /** Groups the agent takes part in. Empty: none. */
  groups: z.array(z.string()).default([]),
  /** In a group, answer only when mentioned. */
  require_mention: z.boolean().default(true),
};

const TelegramSettings = z.strictObject({
  ...people,
  token_env: envName,
  mode: z.enum(["poll", "webhook"]).default("poll"),
  /** Contains the secret that Telegram sends with each update; required for `webhook`. */
  webhook_secret_env: envName.optional(),
  api_root: z.url().default("https://api.telegram.org"),
});
export type TelegramAccount = z.infer<typeof TelegramSettings>;

const IrcSettings = z.strictObject({
  ...people,
  host: z.string(),
  port: z.number().int().min(1).max(65_535).default(6697),
  tls: z.boolean().default(true),
  nick: z.string().regex(/^[A-Za-z[\]\\`_^{|}][A-Za-z0-9[\]\\`_^{|}-]{0,29}$/),
  password_env: envName.optional(),
});
export type IrcAccount = z.infer<typeof IrcSettings>;

const WebhookSettings = z.strictObject({
  /** Contains the shared secret of the signature. */
  secret_env: envName,
  /** The sender's signature scheme: how the signature and the delivery id are read. `parley`: X-Parley-Signature over `id.timestamp.body`. */
  signer: z.enum(["parley", "github", "standard"]).default("parley"),
  /** Destination of the agent's answer; left out: it stays in the session. */
  reply_to: z.strictObject({ channel: z.string(), account: z.string(), conversation: z.string() }).optional(),
  /**
   * Calls that a turn of this webhook may make without approval, beyond a guest's rights; also in a tainted turn and in
   * the turn's sub-agents. Permission rules, each with the full name of its tool: `exec(git *)`.
   */
  allow: z.array(NamedRule).default([]),
});
export type WebhookAccount = z.infer<typeof WebhookSettings>;

const accountName = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,31}$/);

export const ChannelSettings = z
  .strictObject({
    telegram: z.record(accountName, TelegramSettings).default({}),
    irc: z.record(accountName, IrcSettings).default({}),
  })
  .prefault({});

/** Webhooks under `/hooks/` by name, to which other systems post. */
export const WebhooksSettings = z.record(accountName, WebhookSettings).default({});
