// Turns a received mail into a draft, or into the reason why it is ignored. The sender is who the mail server authenticated, never the
// From alone; no conversation, no code and no answer goes to anybody else.
import type { EmailAccount } from "@parley/contracts";
import { simpleParser, type AddressObject, type Attachment, type ParsedMail } from "mailparser";
import type { InboundDraft, IncomingFile } from "../channel.ts";
import { sha256Hex } from "../digest.ts";
import { isAuthenticated, normalAddress } from "./authentication.ts";
import { automaticReason, type MailHeaders } from "./automatic.ts";
import { limitedText, writtenText } from "./reply-text.ts";
import { contextOf, conversationOf, domainOf, isOwnMessageId, messageIds, threadOf } from "./threads.ts";

export type ReceivedMail = { kind: "draft"; draft: InboundDraft } | { kind: "ignored"; reason: string; from?: string };

/** What the reading of a mail depends on. */
export interface ReceiveContext {
  account: string;
  settings: EmailAccount;
  /** The envelope had no sender (LMTP). */
  nullSender: boolean;
}

/** Longer HTML is not converted; the mail then has no text. */
const maxHtmlChars = 2_000_000;
const maxExternalId = 512;

/** Reads a mail. Never rejects because of its content. */
export async function receive(raw: Buffer, context: ReceiveContext): Promise<ReceivedMail> {
  let mail: ParsedMail;
  try {
    mail = await simpleParser(raw, {
      skipTextToHtml: true,
      skipImageLinks: true,
      ignoreEmbedded: true,
      checksumAlgo: false,
      maxHtmlLengthToParse: maxHtmlChars,
    });
  } catch {
    return { kind: "ignored", reason: "it cannot be parsed" };
  }
  return draftOf(mail, context);
}

function draftOf(mail: ParsedMail, { account, settings, nullSender }: ReceiveContext): ReceivedMail {
  const headers = headersOf(mail);
  const person = soleSender(mail, headers);
  if (person === null) return { kind: "ignored", reason: "it has no From with exactly one address" };
  const { address: from, name } = person;
  const ownAddress = normalAddress(settings.address) ?? settings.address;
  const reason =
    automaticReason(headers, { sender: from, ownAddress, nullSender }) ?? refusalOf(mail, headers, from, settings);
  if (reason !== null) return { kind: "ignored", reason, from };

  const messageId = messageIds(headers.get("message-id")?.[0] ?? "")[0] ?? syntheticId(mail, from);
  const earlier = ["references", "in-reply-to"].flatMap((key) => messageIds(headers.get(key)?.[0] ?? ""));
  const conversation = conversationOf(from, earlier[0] ?? messageId, ownAddress);
  const written = writtenText(mail.text ?? "");
  const answersUs = earlier.some((id) => isOwnMessageId(id, ownAddress));
  const files = mail.attachments.map(fileOf);
  const forwards =
    written.forwards ||
    (written.quotes && !answersUs) ||
    mail.attachments.some(({ contentType }) => contentType === "message/rfc822");
  const subject = (mail.subject ?? "").trim();
  const replyContext = contextOf(threadOf(subject, earlier, messageId));
  const externalId = `${from} ${messageId}`;
  return {
    kind: "draft",
    draft: {
      externalId: externalId.length <= maxExternalId ? externalId : sha256Hex(externalId),
      conversation,
      contact: { id: spelledAs(from, settings), ...(name === "" ? {} : { name }) },
      direct: true,
      addressed: true,
      text: textOf(subject, limitedText(written.text, settings.max_body_chars), earlier.length > 0),
      ...(files.length === 0 ? {} : { files }),
      ...(forwards ? { forwarded: {} } : {}),
      ...(mail.date === undefined || Number.isNaN(mail.date.getTime()) ? {} : { sentAt: mail.date.toISOString() }),
      replyTo: {
        channel: "email",
        account,
        conversation,
        ...(replyContext === undefined ? {} : { context: replyContext }),
      },
    },
  };
}

/** Why a person's mail is ignored; null: the sender is authenticated and wrote to the agent. */
function refusalOf(mail: ParsedMail, headers: MailHeaders, from: string, settings: EmailAccount): string | null {
  const ours = new Set([settings.address, ...settings.aliases].map(normalAddress));
  const recipients = [mail.to, mail.cc].flatMap((field) => addressesIn(field));
  if (!recipients.some(({ address }) => ours.has(normalAddress(address)))) return "To and Cc do not name the agent";
  return isAuthenticated(headers.get("authentication-results") ?? [], settings.authserv_id, domainOf(from))
    ? null
    : `the sender is not authenticated by ${settings.authserv_id}`;
}

function headersOf({ headerLines }: ParsedMail): MailHeaders {
  const headers = new Map<string, string[]>();
  for (const { key, line } of headerLines) {
    const value = line.slice(line.indexOf(":") + 1).replace(/\r?\n(?=[ \t])/g, "");
    headers.set(key, [...(headers.get(key) ?? []), value.trim()]);
  }
  return headers;
}

function soleSender(mail: ParsedMail, headers: MailHeaders): { address: string; name: string } | null {
  const senders = addressesIn(mail.from);
  const [only] = senders;
  if (only === undefined || senders.length !== 1 || headers.get("from")?.length !== 1) return null;
  const address = normalAddress(only.address);
  return address === null ? null : { address, name: only.name.replaceAll(/\p{C}/gu, "").slice(0, 200).toWellFormed() };
}

function addressesIn(field: AddressObject | AddressObject[] | undefined): { address: string; name: string }[] {
  const all = field === undefined ? [] : [field].flat().flatMap(({ value }) => value);
  return all.flatMap((entry) => entry.group ?? [entry]).map(({ address = "", name }) => ({ address, name }));
}

/** The address as the settings spell it, which compare addresses as texts. */
function spelledAs(address: string, { owners, allow_from }: EmailAccount): string {
  return [...owners, ...allow_from].find((each) => normalAddress(each) === address) ?? address;
}

/** For a mail without Message-ID: the same for a redelivery, which changes only trace headers. */
function syntheticId({ subject, date, text, attachments }: ParsedMail, from: string): string {
  const parts = [from, subject, date?.toISOString(), text, ...attachments.map(({ content }) => sha256Hex(content))];
  return `<${sha256Hex(JSON.stringify(parts))}@missing>`;
}

/** A command is a mail of its own or the subject of an empty one; the subject of an answer repeats what is known. */
function textOf(subject: string, body: string, isAnswer: boolean): string {
  if (body === "") return subject;
  return isAnswer || subject === "" || /^[/!]/.test(body) ? body : `Subject: ${subject.slice(0, 500)}\n\n${body}`;
}

function fileOf({ filename, contentType, content }: Attachment): IncomingFile {
  return {
    kind: contentType.split("/")[0] === "image" ? "image" : "file",
    name: filename,
    bytes: content.length,
    content,
  };
}
