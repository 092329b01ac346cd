// Operations on the accounts of channels.
import { z } from "zod";
import { accountName } from "../settings/channels.ts";
import { accountStatus } from "../store/accounts.ts";
import { LogLineSchema, logLevels } from "../health.ts";
import { count } from "./fields.ts";
import { operation } from "./operation.ts";

const AccountInput = z.strictObject({
  channel: z.string().min(1),
  /** Its name in parley.toml. */
  account: z.string().min(1),
});

const status = accountStatus.output.shape.accounts.element;

const ChannelAccountSchema = status.omit({ waitingReason: true }).extend({
  /** `file`: in parley.toml; `added`: while the cluster ran, with `channels.add`. */
  origin: z.enum(["file", "added"]),
  /** `paused` by an operator; `disabled`: unusable until its configuration changes; `failing`: retried. */
  state: z.enum(["connected", "listening", "standby", "failing", "disabled", "paused", "unknown"]),
  /** Its own name on the platform, if it is connected. */
  as: z.string().nullable(),
  /** Why it does not work, or why the platform refused the oldest text that waits. */
  reason: z.string().nullable(),
  /** ISO 8601, UTC: since when a replica reports the state; null: no replica responds. */
  since: z.string().nullable(),
});
export type ChannelAccountStatus = z.infer<typeof ChannelAccountSchema>;

export const channelsList = operation({
  name: "channels.list",
  summary: "The accounts of channels: state, owner, last messages, waiting texts and errors",
  role: "owner",
  input: z.strictObject({}),
  output: z.object({ accounts: z.array(ChannelAccountSchema) }),
  http: { method: "GET", path: "/api/channels", answers: { 200: "The configured accounts" } },
  slash: [{ form: "/channels" }],
});

export const channelsKinds = operation({
  name: "channels.kinds",
  summary: "The kinds of channels, and what an account of each needs",
  role: "owner",
  input: z.strictObject({}),
  output: z.object({
    kinds: z.array(
      z.object({
        /** As in `[channels.<name>]` of parley.toml. */
        name: z.string(),
        title: z.string(),
        /** Settings without a default, other than those of secrets. */
        required: z.array(z.string()),
        /** All other settings. */
        optional: z.array(z.string()),
        secrets: z.array(z.object({ setting: z.string(), purpose: z.string(), required: z.boolean() })),
        /** What the owner does on the platform first: steps, Markdown. */
        setUp: z.array(z.string()),
      }),
    ),
  }),
  http: { method: "GET", path: "/api/channel-kinds", answers: { 200: "The kinds" } },
});

/** The longest value of a secret. */
const maxSecretChars = 16_384;

export const channelsAdd = operation({
  name: "channels.add",
  summary: "Add an account on all replicas, or replace the settings of one that was added",
  role: "owner",
  input: z.strictObject({
    channel: z.string().min(1),
    account: accountName.default("main"),
    /** As in `[channels.<channel>.<account>]` of parley.toml. */
    settings: z.record(z.string(), z.unknown()).default({}),
    /**
     * Values of secrets by the setting that names their variable, for example `token_env`. The gateway stores each in a file of its own in
     * PARLEY_SECRETS_DIR. Secrets that are left out are read from the variable or file that the setting names.
     */
    secrets: z.record(z.string(), z.string().min(1).max(maxSecretChars)).default({}),
    /** Add the account even if the platform cannot be reached. */
    unverified: z.boolean().default(false),
  }),
  output: z.object({
    channel: z.string(),
    account: z.string(),
    /** The account's own name on the platform; null: not verified. */
    as: z.string().nullable(),
    replaced: z.boolean(),
  }),
  http: {
    method: "POST",
    path: "/api/channels",
    answers: {
      200: "The account is added",
      400: "invalid_request: unknown channel, invalid settings or a missing secret",
      409: "conflict: parley.toml contains the account",
      422: "account_rejected: the platform refuses the credentials or cannot be reached; nothing was stored",
    },
  },
});

export const channelsRemove = operation({
  name: "channels.remove",
  summary: "Remove an added account from all replicas, with its stored secrets and waiting texts",
  role: "owner",
  input: AccountInput,
  output: z.object({ removed: z.boolean() }),
  http: {
    method: "DELETE",
    path: "/api/channels/:channel/:account",
    answers: {
      200: "The account is removed",
      404: "no_such_account: it is not configured",
      409: "conflict: parley.toml contains the account",
    },
  },
});

export const channelsTest = operation({
  name: "channels.test",
  summary: "Check the credentials of an account with its platform",
  role: "owner",
  input: AccountInput,
  output: z.object({
    ok: z.boolean(),
    /** The account's own name on the platform, or what is wrong. */
    text: z.string(),
  }),
  http: {
    method: "POST",
    path: "/api/channels/:channel/:account/test",
    emptyBody: true,
    answers: { 200: "The result of the check", 404: "no_such_account: it is not configured" },
  },
});

export const channelsPause = operation({
  name: "channels.pause",
  summary: "Stop receiving and sending on an account, on all replicas; texts wait",
  role: "owner",
  audit: ["channel", "account"],
  input: AccountInput,
  output: z.object({ paused: z.boolean() }),
  http: {
    method: "POST",
    path: "/api/channels/:channel/:account/pause",
    emptyBody: true,
    answers: { 200: "The account is paused", 404: "no_such_account: it is not configured" },
  },
});

export const channelsResume = operation({
  name: "channels.resume",
  summary: "End the pause of an account",
  role: "owner",
  audit: ["channel", "account"],
  input: AccountInput,
  output: z.object({ paused: z.boolean() }),
  http: {
    method: "POST",
    path: "/api/channels/:channel/:account/resume",
    emptyBody: true,
    answers: { 200: "The account is not paused", 404: "no_such_account: it is not configured" },
  },
});

export const channelsLogs = operation({
  name: "channels.logs",
  summary: "The newest log lines of all gateways about an account",
  role: "owner",
  input: AccountInput.extend({
    /** The minimum level. */
    level: z.enum(logLevels).default("trace"),
    /** Only lines written then or later. */
    since: z.iso.datetime({ offset: true }).optional(),
    limit: count(1, 200).default(100),
  }),
  output: z.object({
    /** Oldest first. */
    lines: z.array(LogLineSchema),
  }),
  http: {
    method: "GET",
    path: "/api/channels/:channel/:account/logs",
    description:
      "Each gateway keeps its last 200 lines about an account in memory, without secrets. Lines below its log level and lines of gateways that ended are missing; the complete logs are in the output of the processes.",
    answers: { 200: "The lines", 404: "no_such_account: it is not configured" },
  },
});

export const channelsMove = operation({
  name: "channels.move",
  summary: "Hand the connections of an account over to a gateway, which keeps them while it is alive",
  role: "owner",
  audit: ["channel", "account", "replica"],
  input: AccountInput.extend({
    /** The name of the gateway's replica; null: the gateways choose again. */
    replica: z.string().min(1).max(200).nullable().default(null),
  }),
  output: z.object({
    movedTo: z.string().nullable(),
    /** The process instances that hold the connections now; null: nobody. */
    owner: z.string().nullable(),
  }),
  http: {
    method: "POST",
    path: "/api/channels/:channel/:account/move",
    answers: {
      200: "The connections move within seconds",
      404: "no_such_account: it is not configured; not_found: there is no such gateway",
      409: "conflict: the account has no connection of its own, the platform calls any gateway",
    },
  },
  slash: [
    {
      form: "/channels move",
      arguments: [{ field: "channel" }, { field: "account" }, { field: "replica", label: "gateway", optional: true }],
    },
  ],
});
