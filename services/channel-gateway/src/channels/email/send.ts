// Sends one mail over SMTP. A mail whose transmission began without an answer may have arrived; it is not sent again.
import { Readable } from "node:stream";
import { errorMessage, type EmailAccount } from "@parley/contracts";
import MailComposer from "nodemailer/lib/mail-composer";
import SMTPConnection from "nodemailer/lib/smtp-connection";
import type { OutboundPart, SendOutcome } from "../channel.ts";
import { withUrls } from "../text/render.ts";
import { normalAddress } from "./authentication.ts";
import { loopHeader } from "./automatic.ts";
import { answerSubject, messageIdOf, parseContext, parseConversation } from "./threads.ts";

const connectTimeoutMs = 8_000;
/** Pauses before a mail is sent again, doubled with each attempt: a server may greylist for minutes or be down for hours. */
const retryMs = { first: 5_000, last: 15 * 60_000 };
/** A server that refuses the password gets further attempts only after this time. */
const refusedRetryMs = 5 * 60_000;
const maxSubject = 78;

export interface SmtpTarget {
  account: string;
  settings: EmailAccount;
  password: string | null;
}

interface ComposedMail {
  messageId: string;
  to: string;
  raw: Buffer;
}

/** Sends a part. Never rejects. */
export async function sendMail(target: SmtpTarget, part: OutboundPart, signal: AbortSignal): Promise<SendOutcome> {
  const address = parseConversation(part.address.conversation);
  if (address === null) return { state: "dropped", reason: "not an e-mail address" };
  if (!target.settings.auto_reply && parseContext(part.address.context) !== null) {
    return { state: "dropped", reason: "auto_reply is off: mail is not answered" };
  }
  if (signal.aborted) return { state: "retry", afterMs: 0, reason: "cancelled before the send" };
  const mail = await compose(target, part, address);
  const message = Readable.from([mail.raw]);
  let transmitted = false;
  message.once("end", () => (transmitted = true));
  try {
    await withConnection(target, signal, async (connection) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      signal.addEventListener("abort", () => reject(new Error("no answer in time")), { once: true });
      const envelope = { from: target.settings.address, to: [mail.to], size: mail.raw.length };
      connection.send(envelope, message, (error) => (error ? reject(error) : resolve()));
      await promise;
    });
    return { state: "sent", providerMessageId: mail.messageId };
  } catch (error) {
    return outcomeOf(error, transmitted, part.attempts);
  }
}

/** Connects and logs in. Rejects with a readable reason that contains no secret. */
export async function checkSmtp(target: SmtpTarget, signal: AbortSignal): Promise<void> {
  try {
    await withConnection(target, signal, async () => undefined);
  } catch (error) {
    throw new Error(`SMTP: ${errorMessage(error)}`, { cause: error });
  }
}

async function withConnection(
  { settings, password }: SmtpTarget,
  signal: AbortSignal,
  use: (connection: SMTPConnection) => Promise<void>,
): Promise<void> {
  const { smtp_host: host, smtp_port: port, smtp_tls, username, address } = settings;
  const connection = new SMTPConnection({
    host,
    port,
    secure: smtp_tls === "implicit",
    requireTLS: smtp_tls === "starttls",
    ignoreTLS: smtp_tls === "none",
    connectionTimeout: connectTimeoutMs,
    greetingTimeout: connectTimeoutMs,
  });
  const { promise: failed, reject } = Promise.withResolvers<never>();
  failed.catch(() => undefined);
  connection.on("error", reject);
  const abort = (): void => reject(new Error("cancelled"));
  signal.addEventListener("abort", abort, { once: true });
  const step = (run: (done: (error?: Error | null) => void) => void): Promise<void> =>
    new Promise((resolve, refuse) => run((error) => (error ? refuse(error) : resolve())));
  const session = async (): Promise<void> => {
    await step((done) => connection.connect(done));
    if (password !== null) await step((done) => connection.login({ user: username ?? address, pass: password }, done));
    await use(connection);
  };
  try {
    await Promise.race([session(), failed]);
    connection.quit();
  } catch (error) {
    connection.close();
    throw error;
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

async function compose(
  { account, settings }: SmtpTarget,
  part: OutboundPart,
  { person, root }: { person: string; root: string | null },
): Promise<ComposedMail> {
  const thread = parseContext(part.address.context);
  const references = thread?.references ?? (root === null ? [] : [root]);
  const files = part.file === undefined ? (part.files ?? []) : [part.file];
  const ownAddress = normalAddress(settings.address) ?? settings.address;
  const messageId = messageIdOf(account, part.idempotencyKey, ownAddress);
  const composer = new MailComposer({
    from: { name: settings.name ?? "", address: settings.address },
    to: { name: "", address: person },
    subject: thread === null ? subjectOf(part, root !== null) : answerSubject(thread.subject),
    messageId,
    references,
    ...(references.length === 0 ? {} : { inReplyTo: references.at(-1) ?? "" }),
    // With the URLs of links, for readers of plain text.
    text: part.text === null ? "" : withUrls({ text: part.text.plain, ranges: [...part.text.ranges] }).text,
    ...(part.text === null ? {} : { html: part.text.text }),
    attachments: files.map(({ name, mediaType, content }) => ({
      filename: name,
      contentType: mediaType,
      content: Buffer.from(content),
    })),
    headers: {
      "Auto-Submitted": thread === null ? "auto-generated" : "auto-replied",
      "X-Auto-Response-Suppress": "All",
      [loopHeader]: ownAddress,
    },
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return { messageId, to: person, raw: await composer.compile().build() };
}

/** The subject of a mail that answers none: the beginning of its text. */
function subjectOf({ text, file }: OutboundPart, inThread: boolean): string {
  const first =
    text?.plain
      .split("\n")
      .find((line) => line.trim() !== "")
      ?.trim() ??
    file?.name ??
    "Message";
  const subject = first.length <= maxSubject ? first : `${first.slice(0, maxSubject - 1).toWellFormed()}…`;
  return inThread ? answerSubject(subject) : subject;
}

function outcomeOf(error: unknown, transmitted: boolean, attempts: number): SendOutcome {
  const reason = errorMessage(error);
  const afterMs = Math.min(retryMs.first * 2 ** Math.min(attempts, 20), retryMs.last);
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  const status = error instanceof Error && "responseCode" in error ? Number(error.responseCode) : Number.NaN;
  const ofThisMail = code === "EMESSAGE" || code === "EENVELOPE";
  if (status >= 400 && status < 500) return { state: "retry", afterMs, reason };
  // The login, TLS or the greeting failed: every other mail fails too, until somebody changes the settings or the server.
  if (code === "EAUTH" || status === 530 || (status >= 500 && !ofThisMail)) {
    return { state: "retry", afterMs: refusedRetryMs, reason, scope: "account" };
  }
  if (status >= 500) return { state: "dropped", reason };
  if (transmitted) return { state: "unknown", reason };
  // Too large for the server, or an address that it cannot take: found before anything was sent.
  if (ofThisMail) return { state: "dropped", reason };
  return { state: "retry", afterMs, reason };
}
