// The e-mail channel: one address. It depends neither on the store nor on access rules.
import { emailChannel, type EmailAccount } from "@parley/contracts";
import type { ChannelAdapter } from "../channel.ts";
import { AccountSettingsError, isLoopback } from "../settings-check.ts";
import { clientList, LmtpListener } from "./lmtp.ts";
import { logIn, openClient, readMailbox } from "./mailbox.ts";
import { checkSmtp, sendMail } from "./send.ts";

export interface EmailSecrets {
  /** For IMAP and SMTP. */
  password?: string;
}

/** Throws an AccountSettingsError for settings that cannot work. */
export function createEmail(account: string, settings: EmailAccount, secrets: EmailSecrets): ChannelAdapter {
  const { mode, imap_host: imapHost, imap_tls, smtp_host, smtp_tls, lmtp_clients, address } = settings;
  const refuse = (problem: string): never => {
    throw new AccountSettingsError("email", account, problem);
  };
  if (!settings.consent) {
    refuse(
      `the agent would read the mail of ${address} and send it to the model's provider; set consent = true to agree`,
    );
  }
  if (mode === "imap" && imapHost === undefined) refuse('mode = "imap" needs imap_host');
  const password = secrets.password ?? null;
  if (mode === "imap" && imap_tls === "none" && !isLoopback(imapHost ?? ""))
    refuse('imap_tls = "none" is only for servers on this machine');
  if (password !== null && smtp_tls === "none" && !isLoopback(smtp_host))
    refuse('a password requires TLS; set smtp_tls to "implicit" or "starttls"');
  if (mode === "lmtp") clientList(lmtp_clients);
  const target = { account, settings, password };

  const adapter: ChannelAdapter = {
    channel: emailChannel.name,
    account,
    capabilities: emailChannel.capabilities,
    ownedConnection: mode === "imap",
    sendsWithoutConnection: true,
    async check(signal) {
      if (mode === "imap") {
        const client = openClient(settings, password ?? "");
        client.on("error", () => undefined);
        const close = (): void => client.close();
        signal.addEventListener("abort", close, { once: true });
        try {
          await logIn(client);
        } finally {
          signal.removeEventListener("abort", close);
          client.close();
        }
      }
      await checkSmtp(target, signal);
      return { as: address };
    },
    send: (part, signal) => sendMail(target, part, signal),
  };
  if (mode === "imap") {
    adapter.connect = (host, lease) => readMailbox(account, settings, password ?? "", host, lease);
  } else {
    adapter.listen = (host, signal) => new LmtpListener(account, settings, host, signal).listen();
  }
  return adapter;
}
