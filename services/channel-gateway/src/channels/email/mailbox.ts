// Receives mail from an IMAP mailbox: one leased connection with IDLE. The cursor is saved with each message, so a new owner continues after
// the last stored mail.
import { errorMessage, WireError, type EmailAccount } from "@parley/contracts";
import { ImapFlow, type MailboxObject } from "imapflow";
import { AccountRejectedError, type ChannelHost, type LeaseRef } from "../channel.ts";
import { sha256Hex } from "../digest.ts";
import { InboundQueue } from "../inbound-queue.ts";
import { receive } from "./receive.ts";

/** How often the mailbox is searched without a notification, for servers that have no IDLE or lose it. */
const pollMs = 30_000;
const connectTimeoutMs = 15_000;
/** Longer than the pause between two searches, so that silence means a dead connection. */
const socketTimeoutMs = 2 * pollMs;
/** After the server has renumbered the mailbox, mail of this age is read again; stored mail is recognised by its Message-ID. */
const rereadMs = 24 * 60 * 60_000;

/** Where the reading of a mailbox is. */
interface MailboxCursor {
  numbering: string;
  uid: number;
}

/** The cursor is `<numbering>:<uid>`. */
function parseCursor(cursor: string | null): MailboxCursor | null {
  const [, numbering = "", uid = ""] = /^(\d{1,20}):(\d{1,10})$/.exec(cursor ?? "") ?? [];
  return numbering === "" ? null : { numbering, uid: Number(uid) };
}

/**
 * Names the numbering of a mailbox: ten digits for its server, user and name, because mailboxes of different servers may have the same
 * UIDVALIDITY, then the UIDVALIDITY. An earlier version wrote the UIDVALIDITY alone; it takes this for a renumbered mailbox and loses no mail.
 */
function numberingOf({ imap_host, imap_port, username, address, imap_mailbox }: EmailAccount, uidValidity: string) {
  const digest = sha256Hex(JSON.stringify([imap_host, imap_port, username ?? address, imap_mailbox]));
  return `1${String(Number.parseInt(digest.slice(0, 12), 16) % 1e9).padStart(9, "0")}${uidValidity.padStart(10, "0")}`;
}

export function openClient(settings: EmailAccount, password: string): ImapFlow {
  const { imap_host: host = "", imap_port: port, imap_tls, username, address } = settings;
  return new ImapFlow({
    host,
    port,
    secure: imap_tls === "implicit",
    doSTARTTLS: imap_tls === "implicit" ? undefined : imap_tls === "starttls",
    auth: { user: username ?? address, pass: password },
    logger: false,
    disableAutoIdle: true,
    connectionTimeout: connectTimeoutMs,
    greetingTimeout: connectTimeoutMs,
    socketTimeout: socketTimeoutMs,
  });
}

/** Connects and logs in. Throws AccountRejectedError when the server refuses the credentials. */
export async function logIn(client: ImapFlow): Promise<void> {
  try {
    await client.connect();
  } catch (error) {
    if (error instanceof Error && "authenticationFailed" in error && error.authenticationFailed === true) {
      throw new AccountRejectedError("the IMAP server refused the username or password");
    }
    throw new Error(`IMAP: ${errorMessage(error)}`, { cause: error });
  }
}

/** Reads the mailbox until the connection breaks or the lease ends. */
export async function readMailbox(
  account: string,
  settings: EmailAccount,
  password: string,
  host: ChannelHost,
  lease: LeaseRef,
): Promise<void> {
  const client = openClient(settings, password);
  const ended = Promise.withResolvers<string>();
  let notify: () => void = () => undefined;
  client.on("error", (error: Error) => ended.resolve(error.message));
  client.on("close", () => ended.resolve("the server closed the connection"));
  client.on("exists", () => notify());
  const close = (): void => client.close();
  lease.signal.addEventListener("abort", close, { once: true });
  let connected = false;
  try {
    if (lease.signal.aborted) return;
    await logIn(client);
    const mailbox = await client.mailboxOpen(settings.imap_mailbox);
    const reader = new MailboxReader({ account, settings, host, lease, client, mailbox });
    await reader.start();
    host.report({ state: "connected", as: settings.address });
    connected = true;
    while (client.usable && !lease.signal.aborted) {
      const notified = Promise.withResolvers<void>();
      notify = notified.resolve;
      await reader.readNew();
      const timer = setTimeout(notified.resolve, pollMs);
      client.idle().catch(() => undefined);
      await Promise.race([notified.promise, ended.promise]);
      clearTimeout(timer);
    }
    if (!lease.signal.aborted) host.report({ state: "failing", reason: await ended.promise });
  } catch (error) {
    if (lease.signal.aborted) return;
    // Else a command that the end of the connection interrupted.
    if (!connected || WireError.is(error)) throw error;
    host.report({ state: "failing", reason: errorMessage(error) });
  } finally {
    lease.signal.removeEventListener("abort", close);
    client.close();
  }
}

interface ReaderDeps {
  account: string;
  settings: EmailAccount;
  host: ChannelHost;
  lease: LeaseRef;
  client: ImapFlow;
  mailbox: MailboxObject;
}

class MailboxReader {
  readonly #deps: ReaderDeps;
  readonly #queue: InboundQueue;
  readonly #uidValidity: string;
  readonly #numbering: string;
  /** The newest mail when the mailbox was opened. */
  readonly #newestUid: number;
  #uid: number;
  /** After a renumbering, until recent mail has been read: older mail above the position is not read. */
  #since: Date | null = null;

  constructor(deps: ReaderDeps) {
    this.#deps = deps;
    this.#queue = new InboundQueue(deps.host, deps.lease);
    this.#uidValidity = String(deps.mailbox.uidValidity);
    this.#numbering = numberingOf(deps.settings, this.#uidValidity);
    this.#newestUid = deps.mailbox.uidNext - 1;
    this.#uid = this.#newestUid;
  }

  /** Continues at the cursor of the lease. The first time, mail that is already there is not read. */
  async start(): Promise<void> {
    const { host, lease } = this.#deps;
    const cursor = parseCursor(lease.cursor);
    if (cursor?.numbering === this.#numbering || cursor?.numbering === this.#uidValidity) {
      this.#uid = cursor.uid;
      return;
    }
    if (cursor !== null) {
      host.log.warn(
        { uidValidity: this.#uidValidity },
        "mailbox changed in the settings, or renumbered by the server: recent mail is read again",
      );
      this.#uid = 0;
      this.#since = new Date(Date.now() - rereadMs);
      return;
    }
    await host.checkpoint({ lease, cursor: this.#cursorAt(this.#uid) });
  }

  /** Reads the mail above the cursor in the order of arrival. Rejects when the lease or the connection is lost. */
  async readNew(): Promise<void> {
    const { client, host, lease } = this.#deps;
    const range = { uid: `${this.#uid + 1}:*`, ...(this.#since === null ? {} : { since: this.#since }) };
    const found = await client.search(range, { uid: true });
    // `n:*` contains the newest mail even when its number is below n.
    const uids = (Array.isArray(found) ? found : []).filter((uid) => uid > this.#uid).toSorted((a, b) => a - b);
    let saved = true;
    for (const uid of uids) {
      if (lease.signal.aborted) return;
      saved = await this.#read(uid);
      this.#uid = uid;
    }
    if (this.#since !== null) {
      this.#since = null;
      this.#uid = Math.max(this.#uid, this.#newestUid);
      saved = false;
    }
    if (!saved) await host.checkpoint({ lease, cursor: this.#cursorAt(this.#uid) });
  }

  /** Returns whether the cursor was saved with a message. */
  async #read(uid: number): Promise<boolean> {
    const { account, settings, client, host, lease } = this.#deps;
    const about = await client.fetchOne(String(uid), { uid: true, size: true }, { uid: true });
    // It was deleted meanwhile.
    if (about === false) return false;
    if ((about.size ?? 0) > settings.max_mail_bytes) {
      host.log.warn({ messageId: uid, bytes: about.size }, "mail skipped: it is larger than max_mail_bytes");
      return false;
    }
    const whole = await client.fetchOne(String(uid), { uid: true, source: true }, { uid: true });
    if (whole === false || whole.source === undefined) return false;
    const mail = await receive(whole.source, { account, settings, nullSender: false });
    if (mail.kind === "ignored") {
      host.log.info({ messageId: uid, reason: mail.reason, from: mail.from }, "mail ignored");
      return false;
    }
    // If recent mail is read again and that is interrupted, it begins again: the new numbering alone would stand for older mail too.
    const { cursor } = lease;
    this.#queue.push(mail.draft, this.#since === null || cursor === null ? this.#cursorAt(uid) : cursor);
    await Promise.race([this.#queue.settled(), this.#queue.fenced]);
    lease.signal.throwIfAborted();
    if (settings.mark_seen) await client.messageFlagsAdd(String(uid), ["\\Seen"], { uid: true });
    return true;
  }

  #cursorAt(uid: number): string {
    return `${this.#numbering}:${uid}`;
  }
}
