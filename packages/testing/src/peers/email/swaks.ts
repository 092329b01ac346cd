// People who write mail with swaks.
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { debianBinary, sharedCacheDir } from "@parley/local";
import { mailDomain } from "./exim.ts";

/** A mail that a person writes. */
export interface WrittenMail {
  /** Default: `ann@test.local`, in the header and the envelope. */
  from?: string;
  /** The envelope sender when it differs; `<>` for a bounce. */
  envelopeFrom?: string;
  to?: string;
  messageId?: string;
  subject?: string;
  body?: string;
  /** Further header lines, for example `In-Reply-To: <a@b>`. */
  headers?: readonly string[];
  /** Paths of files to attach. */
  attach?: readonly string[];
  /** The whole mail instead: header, empty line, body. */
  raw?: string;
}

/** Writes a mail; resolves when the server has accepted it and rejects when it refuses it. */
export type WriteMail = (mail: WrittenMail) => Promise<void>;

/** Writes through the mail server on a loopback port; keeps the mails in `folder`. */
export async function swaksWriter(folder: string, port: number): Promise<WriteMail> {
  const swaks = await debianBinary("swaks", "swaks", sharedCacheDir);
  let written = 0;
  return async (mail) => {
    const data = join(folder, `written-${(written += 1)}.eml`);
    const from = mail.from ?? `ann@${mailDomain}`;
    const header = [
      `From: ${from}`,
      `To: ${mail.to ?? `agent@${mailDomain}`}`,
      `Subject: ${mail.subject ?? "Hello"}`,
      `Message-Id: ${mail.messageId ?? `<m${written}.${process.pid}.${Date.now()}@${mailDomain}>`}`,
      `Date: ${new Date().toUTCString().replace("GMT", "+0000")}`,
      ...(mail.headers ?? []),
    ];
    const typed = mail.attach === undefined && !(mail.headers ?? []).some((line) => /^content-type:/i.test(line));
    if (typed)
      header.push("MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: 8bit");
    const args = ["--server", `127.0.0.1:${port}`, "--timeout", "60", "--suppress-data"];
    args.push("--from", mail.envelopeFrom ?? /<([^>]*)>/.exec(from)?.[1] ?? from);
    args.push("--to", /<([^>]*)>/.exec(mail.to ?? "")?.[1] ?? mail.to ?? `agent@${mailDomain}`);
    if (mail.attach === undefined) {
      writeFileSync(data, mail.raw ?? `${header.join("\n")}\n\n${mail.body ?? "hello"}\n`);
      args.push("--data", `@${data}`);
    } else {
      const named = header.flatMap((line) => ["--header", line]);
      args.push(...named, "--body", mail.body ?? "hello", ...mail.attach.flatMap((path) => ["--attach", `@${path}`]));
    }
    await new Promise<void>((resolve, reject) => {
      execFile(swaks.path, args, { maxBuffer: 64 << 20 }, (error, stdout) =>
        error === null ? resolve() : reject(new Error(`swaks: ${stdout.slice(-1_500)}`)),
      );
    });
  };
}
