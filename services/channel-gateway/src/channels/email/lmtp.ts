// Receives mail over LMTP on any replica. The mail server is told to try again later (451) until the message is committed, so it keeps the
// mail through every failure here.
import { once } from "node:events";
import { BlockList, isIP } from "node:net";
import { callbackify } from "node:util";
import { errorMessage, WireError, type EmailAccount } from "@parley/contracts";
import { FairSemaphore } from "@parley/kit";
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from "smtp-server";
import type { ChannelHost } from "../channel.ts";
import { normalAddress } from "./authentication.ts";
import { receive } from "./receive.ts";

/** Mails that are held in memory at the same time; further ones wait at their sender. */
const maxAtOnce = 3;
const maxClients = 30;
const idleMs = 60_000;
/** How long a drain waits for mails in transfer. */
const closeMs = 3_000;

/** An answer of the protocol. */
class LmtpError extends Error {
  override readonly name = "LmtpError";
  readonly responseCode: number;

  constructor(responseCode: number, message: string) {
    super(message);
    this.responseCode = responseCode;
  }
}

export class LmtpListener {
  readonly #account: string;
  readonly #settings: EmailAccount;
  readonly #host: ChannelHost;
  readonly #signal: AbortSignal;
  readonly #atOnce = new FairSemaphore(maxAtOnce);

  constructor(account: string, settings: EmailAccount, host: ChannelHost, signal: AbortSignal) {
    this.#account = account;
    this.#settings = settings;
    this.#host = host;
    this.#signal = signal;
  }

  /**
   * Listens until the signal aborts; then it accepts no further mail and waits briefly for those in transfer. Rejects when the port
   * cannot be used.
   */
  async listen(): Promise<void> {
    const signal = this.#signal;
    const { lmtp_host: host, lmtp_port: port, lmtp_clients, max_mail_bytes, address, aliases } = this.#settings;
    const clients = clientList(lmtp_clients);
    const ours = new Set([address, ...aliases].map(normalAddress));
    const server = new SMTPServer({
      lmtp: true,
      authOptional: true,
      disabledCommands: ["AUTH", "STARTTLS"],
      disableReverseLookup: true,
      size: max_mail_bytes,
      maxClients,
      socketTimeout: idleMs,
      closeTimeout: closeMs,
      banner: "Parley",
      onConnect: ({ remoteAddress }, callback) => {
        if (allows(clients, remoteAddress)) return callback();
        this.#host.log.warn({ remoteAddress }, "mail server refused: its address is not in lmtp_clients");
        callback(new LmtpError(550, "not allowed to deliver here"));
      },
      onRcptTo: (recipient, _session, callback) =>
        callback(ours.has(withoutDetail(recipient.address)) ? null : new LmtpError(550, "no such mailbox")),
      onData: callbackify((stream: SMTPServerDataStream, session: SMTPServerSession) => this.#take(stream, session)),
    });
    // Errors of single connections, such as one that was cut.
    server.on("error", (error: Error) => this.#host.log.warn({ reason: error.message }, "LMTP connection failed"));
    const closed = once(server.server, "close");
    // It rejects too when the port cannot be used, before anybody waits for it.
    closed.catch(() => undefined);
    // Replicas on one machine share the port.
    server.listen({ host, port, reusePort: process.platform === "linux" });
    try {
      await once(server.server, "listening", { signal });
      this.#host.report({ state: "connected", as: `${address} (LMTP on ${host}:${port})` });
      await Promise.race([aborted(signal), closed]);
    } finally {
      await new Promise<void>((resolve) => server.close(() => resolve()));
    }
  }

  async #take(stream: SMTPServerDataStream, session: SMTPServerSession): Promise<void> {
    let release: (() => void) | null = null;
    try {
      release = await this.#atOnce.acquire(this.#signal);
      const raw = await contentOf(stream, this.#settings.max_mail_bytes);
      if (raw === null) throw new LmtpError(552, "the mail is too large");
      const { mailFrom } = session.envelope;
      const nullSender = mailFrom === false || mailFrom.address === "";
      const mail = await receive(raw, { account: this.#account, settings: this.#settings, nullSender });
      if (mail.kind === "ignored") {
        this.#host.log.info({ reason: mail.reason, from: mail.from }, "mail ignored");
        return;
      }
      await this.#host.accept(mail.draft);
    } catch (error) {
      throw this.#answerTo(error);
    } finally {
      release?.();
    }
  }

  #answerTo(error: unknown): LmtpError {
    if (error instanceof LmtpError) return error;
    const reason = errorMessage(error);
    if (WireError.is(error, "INVALID_INPUT", "TOO_LARGE")) {
      this.#host.log.error({ reason }, "mail refused: it can never be stored");
      return new LmtpError(554, "the mail cannot be stored");
    }
    this.#host.log.warn({ reason }, "mail not stored: deferred");
    return new LmtpError(451, "not stored, try again later");
  }
}

/** The whole mail; null when it is larger than `maxBytes`. The rest of it is read and dropped. */
async function contentOf(stream: SMTPServerDataStream, maxBytes: number): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= maxBytes) chunks.push(chunk);
    else chunks.length = 0;
  }
  return bytes > maxBytes ? null : Buffer.concat(chunks);
}

/** Throws an Error for an entry that is neither an address nor a network. */
export function clientList(entries: readonly string[]): BlockList {
  const list = new BlockList();
  for (const entry of entries) {
    const [address = "", prefix] = entry.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    if (isIP(address) === 0) throw new Error(`lmtp_clients: "${entry}" is not an address or network`);
    if (prefix === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(prefix), family);
  }
  return list;
}

function allows(clients: BlockList, address: string): boolean {
  return clients.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}

/** `agent+detail@example.com` is delivered to `agent@example.com`. */
function withoutDetail(address: string): string | null {
  return normalAddress(address.replace(/\+[^@]*@/, "@"));
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, "abort");
}
