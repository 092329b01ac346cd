// Mail that no person wrote: bounces, automatic answers, mailing lists, and our own mail. Answering it would create loops (RFC 3834). Pure.

/** The header fields of a mail, by lower-case name, in order. */
export type MailHeaders = ReadonlyMap<string, readonly string[]>;

/** Our answers carry it with the agent's address, so that they are recognised when they come back. */
export const loopHeader = "X-Loop";

const listHeaders = ["list-id", "list-post", "list-unsubscribe", "list-help", "list-owner", "mailing-list"];
const automaticHeaders = ["x-autoreply", "x-autorespond", "x-autoresponder", "x-mail-autoreply"];

/** Why a mail must not be answered; null: a person wrote it to `ownAddress`. */
export function automaticReason(
  headers: MailHeaders,
  { sender, ownAddress, nullSender }: { sender: string; ownAddress: string; nullSender: boolean },
): string | null {
  const first = (name: string): string => (headers.get(name)?.[0] ?? "").trim().toLowerCase();
  if (nullSender || first("return-path") === "<>") return "a bounce or notification (null sender)";
  if (sender === ownAddress || (headers.get("x-loop") ?? []).some((value) => value.trim().toLowerCase() === ownAddress))
    return "our own mail";
  const submitted = first("auto-submitted");
  if (submitted !== "" && !/^no\b/.test(submitted)) return `automatic (Auto-Submitted: ${submitted.slice(0, 40)})`;
  const automatic = automaticHeaders.find((name) => headers.has(name));
  if (automatic !== undefined) return `automatic (${automatic})`;
  if (/\b(?:all|autoreply)\b/.test(first("x-auto-response-suppress"))) return "automatic (X-Auto-Response-Suppress)";
  if (/^(?:bulk|list|junk|auto_reply)\b/.test(first("precedence")))
    return `bulk (Precedence: ${first("precedence").slice(0, 40)})`;
  const list = listHeaders.find((name) => headers.has(name));
  if (list !== undefined) return `a mailing list (${list})`;
  if (/^multipart\/report\b/.test(first("content-type"))) return "a report";
  if (/^(?:mailer-daemon|postmaster)@/.test(sender)) return "from a mail server";
  return null;
}
