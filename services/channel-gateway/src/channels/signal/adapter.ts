// The Signal channel: one number, through a signal-cli daemon. One replica holds the event stream; it also sends. It depends neither on
// the store nor on access rules.
import { signalChannel, type SignalAccount } from "@parley/contracts";
import { z } from "zod";
import type { ChannelAdapter } from "../channel.ts";
import { DownloadFailedError } from "../download.ts";
import { AccountSettingsError, isLoopback } from "../settings-check.ts";
import { isReady } from "./daemon.ts";
import { maxAttachmentBytes, type FileHandle } from "./parse.ts";
import { receive, requireAccount } from "./receive.ts";
import { createCall } from "./rpc.ts";
import { messageOperations, sendPart, showTyping } from "./send.ts";

const typingWithinMs = 5_000;

/** Overrides for tests. */
export interface SignalTuning {
  /** After this silence the event stream counts as broken. */
  silenceMs?: number;
}

export function createSignal(
  account: string,
  settings: SignalAccount,
  { silenceMs }: SignalTuning = {},
): ChannelAdapter {
  validate(account, settings);
  const call = createCall(settings.daemon_url, settings.number);
  const AttachmentData = z.object({ data: z.base64() });
  const soon = () => AbortSignal.timeout(typingWithinMs);

  return {
    channel: signalChannel.name,
    account,
    capabilities: signalChannel.capabilities,
    ownedConnection: true,
    connect: (host, lease) => receive({ account, settings, call, silenceMs }, host, lease),
    async check(signal) {
      // Only the gateway that holds the lease starts the daemon, so there is none before the account is added.
      if (settings.start_daemon && !(await isReady(settings.daemon_url, signal))) return null;
      await requireAccount(call, settings.number, signal);
      return { as: settings.number };
    },
    send: (part, signal) => sendPart(call, part, signal),
    ...messageOperations(call, signalChannel.capabilities.acknowledgement ?? ""),
    typing: ({ conversation }) => showTyping(call, conversation, false, soon()),
    stopTyping: ({ conversation }) => showTyping(call, conversation, true, soon()),
    async fetchFile(handle, maxBytes, signal) {
      const answer = await call("getAttachment", { ...(JSON.parse(handle) as FileHandle) }, AttachmentData, signal);
      if (answer.kind !== "ok") throw new DownloadFailedError(`getAttachment: ${answer.reason}`);
      const content = Buffer.from(answer.result.data, "base64");
      return content.length > Math.min(maxBytes, maxAttachmentBytes) ? "too_large" : content;
    },
  };
}

/** Throws an AccountSettingsError for settings that cannot work or would be unsafe. */
function validate(account: string, { owners, allow_from: allowed, groups, ...settings }: SignalAccount): void {
  const fail = (problem: string): never => {
    throw new AccountSettingsError("signal", account, problem);
  };
  const person = [...owners, ...allowed].find((id) => !z.uuid().safeParse(id).success || id !== id.toLowerCase());
  if (person !== undefined) {
    fail(`"${person}" in owners or allow_from is not an account id (a UUID in lower case; \`listContacts\` shows it).`);
  }
  const group = groups.find((id) => id !== "*" && !/^[A-Za-z0-9+/]{16,}={0,2}$/.test(id));
  if (group !== undefined) fail(`"${group}" in groups is not a group id (base64; \`listGroups\` shows it).`);
  const { hostname, protocol } = new URL(settings.daemon_url);
  if (settings.start_daemon && (!isLoopback(hostname) || protocol !== "http:")) {
    fail("start_daemon requires a daemon_url on the loopback interface, because the daemon has no password.");
  }
}
