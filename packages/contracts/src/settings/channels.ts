// Accounts on chat platforms, from the entries of the channels, and inbound webhooks.
import { z } from "zod";
import { channelEntries } from "../channels/index.ts";
import { secretVariable, type PeoplePolicy } from "../channels/entry.ts";
import { webhookFormats, webhookSigners } from "../webhooks.ts";
import { SingleToolRule } from "./permissions.ts";

const WebhookSettings = z.strictObject({
  /** Contains the shared secret of the signature. */
  secret_env: secretVariable,
  /** The sender: how its signature and delivery id are read, and how its events are described. docs/webhooks.md lists them. */
  signer: z.enum(webhookSigners).default("parley"),
  /** `event`: a description of the events of a known sender, otherwise `json`. `json`: the body with indentation. `text`: the body as it is. */
  format: z.enum(webhookFormats).default("event"),
  /**
   * The conversation of its deliveries: the thread `main`, one of its own for all of them, a `new` one for each, or `session:<key>`. Omitted: `main` if
   * `session.share` contains `webhooks`, otherwise `own`.
   */
  target: z
    .union([z.enum(["main", "own", "new"]), z.templateLiteral(["session:", z.string().min(1).max(480)])])
    .optional(),
  /**
   * Each delivery that is handled outside of the owner's thread leaves a note there: one line of untrusted text with its source and its
   * session. The note is a turn of its own.
   */
  note: z.boolean().default(false),
  /** The profile that handles the deliveries, in a session of its own, instead of the agent itself. Applies to a new session. */
  profile: z.string().optional(),
  /** Destination of the agent's answer; omitted: it stays in the session. */
  reply_to: z.strictObject({ channel: z.string(), account: z.string(), conversation: z.string() }).optional(),
  /**
   * Calls that a turn of this webhook may make without approval, beyond a guest's rights; also in a tainted turn and in
   * the turn's sub-agents. Permission rules, each with the full name of its tool: `exec(git *)`.
   */
  allow: z.array(SingleToolRule).default([]),
});
export type WebhookAccount = z.infer<typeof WebhookSettings>;

/** The name of an account or webhook in settings. */
export const accountName = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,31}$/);

/** The accounts of each channel by name; the entry of a channel defines their settings. */
export const ChannelSettings = z
  .strictObject(
    Object.fromEntries(
      channelEntries.map(({ name, settings }) => [name, z.record(accountName, settings).default({})]),
    ) as Record<string, z.ZodType<Record<string, PeoplePolicy>>>,
  )
  .prefault({});

/** Webhooks under `/hooks/` by name, to which other systems post. */
export const WebhooksSettings = z.record(accountName, WebhookSettings).default({});
