// Mail for tests: a real Exim, a real Dovecot, people who write with swaks, and their mailboxes. Nothing leaves the machine.
import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, watch } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { untilValue } from "../../until.ts";
import { startDovecot, type Dovecot } from "./dovecot.ts";
import { authservId, mailDomain, startExim, type Exim } from "./exim.ts";
import { swaksWriter, type WrittenMail } from "./swaks.ts";

const password = "s3cret-mail";

export interface MailPeerOptions {
  /** Mail for the agent goes to this LMTP port; omitted: to a mailbox that an IMAP server serves. */
  lmtpPort?: number;
  /** Whether the IMAP server has IDLE; without it a client must search for new mail. Default true. */
  imapIdle?: boolean;
}

export interface MailPeer extends AsyncDisposable {
  readonly host: string;
  readonly smtpPort: number;
  /** 0: the agent's mail goes to LMTP. */
  readonly imapPort: number;
  /** The password of the user `agent` for SMTP and IMAP. */
  readonly password: string;
  readonly domain: string;
  readonly authservId: string;
  readonly exim: Exim;
  readonly dovecot: Dovecot | null;
  /** Sends a mail with swaks. Resolves when the mail server has accepted it; rejects with the transcript when it refuses. */
  write(mail: WrittenMail): Promise<void>;
  /** The mails in a person's mailbox, as they were delivered, oldest first. */
  mails(user: string): string[];
  /** Waits until a person has `count` mails. */
  untilMails(user: string, count: number): Promise<string[]>;
  /** What Exim logged, one line each. */
  log(): string;
  untilLogged(pattern: RegExp): Promise<void>;
}

export async function startMailPeer({ lmtpPort, imapIdle = true }: MailPeerOptions = {}): Promise<MailPeer> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "parley-mail-")));
  const people = ["ann", "bob"];
  const agent = lmtpPort === undefined ? "maildir" : { lmtpPort };
  await using started = new AsyncDisposableStack();
  started.defer(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const dovecot = lmtpPort === undefined ? await startDovecot(folder, password, imapIdle) : null;
  started.defer(() => dovecot?.stop());
  const exim = await startExim({ folder, people, agent, password });
  started.defer(() => exim.kill());
  // From here on the caller ends the servers; a failure before ends those that run.
  const servers = started.move();
  const write = await swaksWriter(folder, exim.port);
  const mails = (user: string): string[] => {
    const box = join(folder, "mail", user);
    const files = ["new", "cur"].flatMap((name) => {
      const path = join(box, name);
      return existsSync(path) ? readdirSync(path).map((file) => join(path, file)) : [];
    });
    return files.toSorted(byDelivery).map((path) => readFileSync(path, "utf8"));
  };
  const log = (): string => {
    const path = join(folder, "log/mainlog");
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  };
  const until = <T>(what: string, look: () => T | null): Promise<T> =>
    untilValue(
      look,
      (check) => {
        // Deliveries are written to the log, also those to a mailbox.
        const watcher = watch(join(folder, "log"), check);
        const again = setInterval(check, 200);
        return () => {
          clearInterval(again);
          watcher.close();
        };
      },
      () => {
        const lines = log()
          .split("\n")
          .filter((line) => !line.includes("queue run"));
        return `${what}; Exim logged:\n${lines.join("\n").slice(-3_000)}`;
      },
    );
  return {
    host: "127.0.0.1",
    smtpPort: exim.port,
    imapPort: dovecot?.port ?? 0,
    password,
    domain: mailDomain,
    authservId,
    exim,
    dovecot,
    write,
    mails,
    untilMails: (user, count) =>
      until(`${count} mails of ${user}`, () => {
        const found = mails(user);
        return found.length >= count ? found : null;
      }),
    log,
    untilLogged: async (pattern) => void (await until(String(pattern), () => (pattern.test(log()) ? true : null))),
    [Symbol.asyncDispose]: () => servers.disposeAsync(),
  };
}

/** Names in a maildir begin with the second, then contain the microsecond of the delivery. */
function byDelivery(a: string, b: string): number {
  const [one, two] = [a, b].map((path) => {
    const [, seconds = "0", micros = "0"] = /\/(\d+)\.[^/]*?M?(?:H|M)(\d+)/.exec(path) ?? [];
    return Number(seconds) * 1_000_000 + Number(micros);
  });
  return (one ?? 0) - (two ?? 0);
}
