// E-mail: one address. Mail comes in over LMTP or from an IMAP mailbox; answers go out over SMTP.
import { z } from "zod";
import { defineChannel, peopleSettings, secretVariable } from "./entry.ts";

const port = z.number().int().min(1).max(65_535);

export const emailChannel = defineChannel({
  name: "email",
  title: "E-mail",
  settings: z.strictObject({
    ...peopleSettings,
    /** The agent reads the mail of this address, and its content goes to the model's provider. Nothing is read without consent. */
    consent: z.boolean().default(false),
    /** The agent's address. Mail whose To and Cc contain neither it nor an alias is ignored. */
    address: z.email(),
    /** Further addresses of the agent. */
    aliases: z.array(z.email()).default([]),
    /** The name in the From of answers. */
    name: z.string().max(100).optional(),
    /** The server whose `Authentication-Results` are trusted: the first word of that header in mail that you received. */
    authserv_id: z.string().min(1),
    mode: z.enum(["imap", "lmtp"]).default("imap"),
    /** false: mail is read, but not answered. */
    auto_reply: z.boolean().default(true),
    /** Maximum characters of a mail's text that the agent reads. */
    max_body_chars: z.number().int().min(100).default(12_000),
    /** Larger mail is refused (LMTP) or skipped (IMAP). */
    max_mail_bytes: z
      .number()
      .int()
      .min(10_000)
      .max(100 * 1024 * 1024)
      .default(25 * 1024 * 1024),
    imap_host: z.string().optional(),
    imap_port: port.default(993),
    imap_tls: z.enum(["implicit", "starttls", "none"]).default("implicit"),
    imap_mailbox: z.string().default("INBOX"),
    /** Sets the flag \Seen on mail that the agent has read. */
    mark_seen: z.boolean().default(true),
    lmtp_host: z.string().default("127.0.0.1"),
    lmtp_port: port.default(2424),
    /** Addresses and networks of the mail servers that may deliver. LMTP has no password. */
    lmtp_clients: z.array(z.string()).default(["127.0.0.1", "::1"]),
    smtp_host: z.string(),
    smtp_port: port.default(465),
    smtp_tls: z.enum(["implicit", "starttls", "none"]).default("implicit"),
    /** For IMAP and SMTP; omitted: the address. */
    username: z.string().optional(),
    password_env: secretVariable.optional(),
  }),
  secrets: [
    {
      setting: "password_env",
      purpose: "the password for IMAP and SMTP, or an app password",
      required: { setting: "mode", value: "imap" },
    },
  ],
  questions: [
    { setting: "address", purpose: "the agent's own e-mail address" },
    {
      setting: "consent",
      purpose:
        "may the agent read the mail that known people send to this address, and send its text to the model's provider? true or false",
    },
    { setting: "authserv_id", purpose: "the first word after Authentication-Results: in mail that you received" },
    { setting: "smtp_host", purpose: "the server that sends mail, for example smtp.gmail.com" },
    {
      setting: "imap_host",
      purpose: "the server with the mailbox, for example imap.gmail.com",
      onlyIf: { setting: "mode", value: "imap" },
    },
  ],
  capabilities: {
    // RFC 5321 limits lines, not texts; a longer answer becomes several mails.
    text: { format: "html", maxLength: 100_000, lengthUnit: "utf16", lengthCountsMarkup: false },
    // Not a limit of servers: it ends loops with programs that answer automatically and do not say so.
    rates: {
      account: { burst: 60, everyMs: 2_000 },
      conversations: [{ pattern: "", burst: 10, everyMs: 60_000 }],
    },
    // A repeated send has the same Message-ID, but only some servers drop it.
    supportsIdempotentSend: false,
    typing: false,
    // Greylisting and spam checks delay the answer to DATA.
    sendTimeoutMs: 20_000,
    files: true,
    filesWithText: true,
    actions: false,
  },
  connection: { setting: "mode", leased: "imap" },
  // SMTP and IMAP over TLS.
  ports: [465, 587, 993],
  contactIdIsConversationId: true,
  exampleAddress: "email:main:ann@example.com",
  setUp: [
    "Create an e-mail address for the agent alone (`address`). With `consent = true` you agree that the agent reads the mail that authenticated, known people send to it, and that the provider of its model receives that text.",
    "Send a mail to the address from another provider and look at its source. The first word after `Authentication-Results:` in the topmost such header is `authserv_id`, for example `mx.google.com`. Without that header the channel cannot be used: your mail server must check DMARC.",
    "Look up the server that sends mail (`smtp_host`). If it does not use port 465 with TLS, also set `smtp_port` and `smtp_tls`. The password of the address is the secret for `password_env`; providers with two-factor login need an app password.",
    'For `mode = "imap"`: look up the server with the mailbox (`imap_host`). Mail that is already in the mailbox is not read.',
    'For `mode = "lmtp"`: let your mail server deliver the address to `lmtp_host`:`lmtp_port` over LMTP, and list the server in `lmtp_clients`. With Postfix: `transport_maps` with `agent@example.com lmtp:inet:127.0.0.1:2424`. With OpenSMTPD: `action "agent" lmtp "127.0.0.1:2424" rcpt-to`.',
    "List the e-mail addresses of people in `owners` and `allow_from`, or leave both out: the answer to a first mail contains a pairing code.",
  ],
  permissions: [
    "IMAP: to read the mailbox, and to set flags for `mark_seen`.",
    "SMTP: to send as `address`.",
    "LMTP: the mail server must remove `Authentication-Results` with its own name from incoming mail (RFC 8601, section 5) and add one to every mail.",
  ],
});
export type EmailAccount = z.infer<typeof emailChannel.settings>;
