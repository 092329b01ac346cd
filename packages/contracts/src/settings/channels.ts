// Accounts on chat platforms, from the entries of the channels, and inbound webhooks.
import { z } from "zod";
import { channelEntries } from "../channels/index.ts";
import { secretVariable, type PeoplePolicy } from "../channels/entry.ts";
import { NamedRule } from "./permissions.ts";

const WebhookSettings = z.strictObject({
  /** Contains the shared secret of the signature. */
  secret_env: secretVariable,
  /** The sender's signature scheme: how the signature and the delivery id are read. `parley`: X-Parley-Signature over `id.timestamp.body`. */
  signer: z.enum(["parley", "github", "standard"]).default("parley"),
  /** The thread of its deliveries: `main`, or one of its own. Left out: `main` if `session.share` contains `webhooks`, otherwise `own`. */
  target: z.enum(["main", "own"]).optional(),
  /** The profile that handles the deliveries, in a session of its own, instead of the agent itself. Applies to a new session. */
  profile: z.string().optional(),
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
