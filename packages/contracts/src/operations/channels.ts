// Operations on the accounts of channels.
import { z } from "zod";
import { accountStatus } from "../store/accounts.ts";
import { operation } from "./operation.ts";

const AccountInput = z.strictObject({
  channel: z.string().min(1),
  /** Its name in parley.toml. */
  account: z.string().min(1),
});

const status = accountStatus.output.shape.accounts.element;

const ChannelAccountSchema = status.extend({
  /** `paused` by an operator; `disabled`: unusable until its configuration changes; `failing`: retried. */
  state: z.enum(["connected", "listening", "standby", "failing", "disabled", "paused", "unknown"]),
  /** Its own name on the platform, if it is connected. */
  as: z.string().nullable(),
  /** Why it does not work. */
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
