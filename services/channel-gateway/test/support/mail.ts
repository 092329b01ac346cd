// An e-mail account with real mail servers, and its LMTP listener as the gateway serves it.
import { connect } from "node:net";
import { emailChannel, type EmailAccount } from "@parley/contracts";
import { freePort } from "@parley/local";
import { startMailPeer, type MailPeer } from "@parley/testing";
import type { ChannelAdapter } from "../../src/channels/channel.ts";
import { createEmail } from "../../src/channels/email/index.ts";
import { TestHost } from "./channel-host.ts";

export function mailSettings(peer: MailPeer, more: Partial<EmailAccount> = {}): EmailAccount {
  return emailChannel.settings.parse({
    address: "agent@test.local",
    consent: true,
    authserv_id: peer.authservId,
    username: "agent",
    smtp_host: "127.0.0.1",
    smtp_port: peer.smtpPort,
    smtp_tls: "none",
    imap_host: "127.0.0.1",
    imap_port: peer.imapPort === 0 ? 993 : peer.imapPort,
    imap_tls: "none",
    password_env: "PARLEY_CHANNEL_MAIL",
    ...more,
  });
}

/** Listens until it is disposed. */
export async function listenLmtp(adapter: ChannelAdapter, host: TestHost): Promise<AsyncDisposable> {
  const stop = new AbortController();
  const listening = adapter.listen?.(host, stop.signal);
  await host.until("the listener", () => (host.reported.some(({ state }) => state === "connected") ? true : null));
  return {
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await listening;
    },
  };
}

/** The status codes that a listener answers to lines, the greeting first. */
export async function answersTo(port: number, lines: readonly string[]): Promise<string[]> {
  const socket = connect(port, "127.0.0.1");
  const left = [...lines];
  const codes: string[] = [];
  for await (const part of socket as AsyncIterable<Buffer>) {
    for (const line of part.toString().split("\r\n")) {
      if (!/^\d{3} /.test(line)) continue;
      codes.push(line.slice(0, 3));
      const next = left.shift();
      if (next === undefined) socket.end();
      else socket.write(`${next}\r\n`);
    }
  }
  return codes;
}

export interface ServedMail extends AsyncDisposable {
  peer: MailPeer;
  host: TestHost;
  adapter: ChannelAdapter;
}

/** An account to which Exim delivers over LMTP. */
export async function serveMail(): Promise<ServedMail> {
  const lmtpPort = await freePort();
  const peer = await startMailPeer({ lmtpPort });
  const settings = mailSettings(peer, { mode: "lmtp", lmtp_port: lmtpPort });
  const adapter = createEmail("main", settings, { password: peer.password });
  const host = new TestHost();
  const listener = await listenLmtp(adapter, host);
  return {
    peer,
    host,
    adapter,
    [Symbol.asyncDispose]: async () => {
      await listener[Symbol.asyncDispose]();
      await peer[Symbol.asyncDispose]();
    },
  };
}
