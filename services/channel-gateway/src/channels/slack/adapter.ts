// The Slack channel: one app in one workspace, in socket mode (leased) or by the Events API (any replica). Messages are sent over HTTP by
// every replica. This file assembles the parts; it depends neither on the store nor on access rules.
import { z } from "zod";
import { slackChannel, type SlackAccount } from "@parley/contracts";
import type { ChannelAdapter, ChannelHost } from "../channel.ts";
import { RememberedCall } from "../remembered-call.ts";
import { AccountSettingsError } from "../settings-check.ts";
import { AuthTest, createCall } from "./api.ts";
import { eventRoutes } from "./events-api.ts";
import { createUpload, fetchFile } from "./files.ts";
import { Intake, type SlackApp } from "./intake.ts";
import { People } from "./people.ts";
import { messageOperations, sendPart, targetOf } from "./send.ts";
import { holdConnection, required } from "./socket-mode.ts";

const statusWithinMs = 5_000;

export interface SlackSecrets {
  /** The bot token. */
  token: string;
  /** The app-level token; required in socket mode. */
  appToken: string;
  /** Required for the Events API. */
  signingSecret: string;
}

export function createSlack(account: string, settings: SlackAccount, secrets: SlackSecrets): ChannelAdapter {
  const { mode, api_root: apiRoot } = settings;
  const refuse = (problem: string): never => {
    throw new AccountSettingsError("slack", account, problem);
  };
  if (!/^xoxb-\S+$/.test(secrets.token)) {
    refuse(`the token in ${settings.token_env} is not a bot token, which begins with xoxb-.`);
  }
  if (mode === "socket" && secrets.appToken === "") refuse('mode = "socket" requires app_token_env.');
  if (mode === "socket" && !/^xapp-\S+$/.test(secrets.appToken)) {
    refuse(`the token in ${settings.app_token_env} is not an app-level token, which begins with xapp-.`);
  }
  if (mode === "events" && secrets.signingSecret === "") refuse('mode = "events" requires signing_secret_env.');
  const api = { apiRoot, token: secrets.token };
  const call = createCall(api);
  const appCall = createCall({ ...api, token: secrets.appToken });
  const upload = createUpload(call);

  const me = new RememberedCall((signal) => call("auth.test", {}, AuthTest, signal));
  const slackApp: SlackApp = {
    account,
    replyInThread: settings.reply_in_thread,
    call,
    people: new People(call),
    identify: (signal) => me.answer(signal),
  };
  /** Slack shows a status only in threads, and only for apps that may set it. */
  let hasStatus = true;
  const showStatus = async (conversation: string, status: string): Promise<void> => {
    const target = targetOf(conversation);
    if (!hasStatus || target?.threadTs === undefined) return;
    const place = { channel_id: target.channel, thread_ts: target.threadTs };
    const signal = AbortSignal.timeout(statusWithinMs);
    const answer = await call("assistant.threads.setStatus", { ...place, status }, z.unknown(), signal);
    const isRefused = answer.kind === "refused" && /^(?:missing_scope|unknown_method|not_allowed)/.test(answer.code);
    if (isRefused) hasStatus = false;
  };

  const adapter: ChannelAdapter = {
    channel: slackChannel.name,
    account,
    capabilities: slackChannel.capabilities,
    ownedConnection: mode === "socket",
    slots: mode === "socket" ? settings.connections : 1,
    sendsWithoutConnection: true,
    fetchFile: (handle, maxBytes, signal) => fetchFile(api, handle, maxBytes, signal),
    async check(signal) {
      const { user, team } = required(await call("auth.test", {}, AuthTest, signal));
      if (mode === "socket") {
        required(await appCall("apps.connections.open", {}, z.unknown(), signal));
      }
      return { as: `@${user} (${team})` };
    },
    send: (part, signal) => sendPart(call, upload, part, signal),
    ...messageOperations(call, slackChannel.capabilities.acknowledgement ?? ""),
    typing: ({ conversation }) => showStatus(conversation, "is thinking…"),
    stopTyping: ({ conversation }) => showStatus(conversation, ""),
  };
  /** One for all connections of this replica: it keeps the order of a conversation. */
  let intake: Intake | undefined;
  const takeOf = (host: ChannelHost) => {
    const shared = (intake ??= new Intake(slackApp, host));
    return (type: string, payload: unknown) => shared.take(type, payload);
  };
  if (mode === "socket") {
    adapter.connect = async (host, lease) => {
      me.forget();
      try {
        await holdConnection(slackApp, appCall, host, lease, takeOf(host));
      } catch (error) {
        // What the end of the lease interrupted is no failure.
        if (!lease.signal.aborted) throw error;
      }
    };
  } else {
    adapter.routes = (app, host) => eventRoutes(account, secrets.signingSecret, app, host, takeOf(host));
  }
  return adapter;
}
