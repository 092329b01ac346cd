// Converts one received envelope to a draft or a change for the gateway. Pure: no network, no clock. It does not authorize the sender.
import { attachmentName, sizeText } from "@parley/contracts";
import { oneLine } from "@parley/kit";
import type { InboundChange, InboundDraft, IncomingFile } from "../channel.ts";
import { changeOf, contactOf, invalid, sentAtOf, skipped, type ParsedInput, type Skipped } from "../parsed.ts";
import { ReceivedEvent, type Attachment, type DataMessage, type Mention } from "./envelope.ts";

export type Parsed = ParsedInput | Skipped;

export interface ParseContext {
  account: string;
  /** The account's own number. */
  number: string;
}

/** Larger attachments are named in the text instead. */
export const maxAttachmentBytes = 8 * 1024 * 1024;
const maxNameChars = 100;
const uuidPattern = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** What `fetchFile` needs: the daemon finds an attachment by its id and by whom it came from. */
export interface FileHandle {
  id: string;
  recipient?: string;
  groupId?: string;
}

export function parse(data: unknown, context: ParseContext): Parsed {
  const parsed = ReceivedEvent.safeParse(data);
  if (!parsed.success) return invalid("envelope", parsed.error);
  const { account, envelope } = parsed.data;
  if (account != null && account !== context.number) return skipped("received by another number");
  // What the account's owner writes on another device of the same number.
  if (envelope.syncMessage != null) return skipped("sync message");
  if (envelope.sourceNumber === context.number) return skipped("own message");
  const sender = envelope.sourceUuid?.toLowerCase() ?? "";
  const edit = envelope.editMessage;
  const message = edit?.dataMessage ?? envelope.dataMessage;
  if (message == null) return skipped("not a message");
  if (!uuidPattern.test(sender)) return skipped("no account id of the sender");
  const place = placeOf(message, sender, envelope.sourceName, context);
  const externalId = messageId(message.timestamp, sender);
  const change = effectOf(message, edit?.targetSentTimestamp, sender, context);
  if (change !== null) return changeOf(place, { externalId, ...change });
  if (message.storyContext != null) return skipped("reply to a story");
  const text = textOf(message, context);
  if (text === null) return skipped("no text");
  const quote = quoteOf(message, sender, context);
  const files = incomingFiles(message, sender);
  return {
    kind: "message",
    draft: {
      ...place,
      externalId,
      ...sentAtOf(message.timestamp),
      addressed: place.direct || isMentioned(message.mentions, context) || quote?.ofAgent === true,
      text,
      ...(quote === undefined ? {} : { quote }),
      ...(files.length === 0 || message.viewOnce === true ? {} : { files }),
    },
  };
}

/** The id of a message: nobody sends two messages with the same timestamp. */
function messageId(timestamp: number, author: string): string {
  return `${timestamp}/${author}`;
}

function placeOf(
  { groupInfo, timestamp }: DataMessage,
  sender: string,
  name: string | null | undefined,
  context: ParseContext,
) {
  const groupId = groupInfo?.groupId;
  const direct = groupId === undefined;
  const conversation = direct ? sender : `group:${groupId}`;
  const replyTo = { channel: "signal", account: context.account, conversation };
  return {
    conversation,
    ...(direct ? {} : { group: groupId }),
    contact: contactOf(sender, oneLine(name ?? "", maxNameChars)),
    direct,
    // No reply quote in a direct conversation, where it is clear what is answered.
    replyTo: direct ? replyTo : { ...replyTo, replyToId: messageId(timestamp, sender) },
  };
}

function incomingFiles(message: DataMessage, sender: string): IncomingFile[] {
  const groupId = message.groupInfo?.groupId;
  const from = groupId === undefined ? { recipient: sender } : { groupId };
  return filesOf(message).flatMap((attachment) => {
    const { id, filename, size } = attachment;
    if (id == null || isTooLarge(attachment)) return [];
    const handle = JSON.stringify({ id, ...from } satisfies FileHandle);
    return [{ kind: kindOf(attachment), name: filename ?? undefined, bytes: size ?? null, handle }];
  });
}

/** What the message does to an earlier one; null for a message of its own. */
function effectOf(
  message: DataMessage,
  editedTimestamp: number | undefined,
  sender: string,
  context: ParseContext,
): Pick<InboundChange, "messageId" | "change"> | null {
  const { remoteDelete, reaction } = message;
  if (editedTimestamp !== undefined) {
    const text = textOf(message, context) ?? "";
    return { messageId: messageId(editedTimestamp, sender), change: { kind: "edited", text } };
  }
  if (remoteDelete != null)
    return { messageId: messageId(remoteDelete.timestamp, sender), change: { kind: "deleted" } };
  if (reaction == null) return null;
  const ofAgent = reaction.targetAuthorNumber === context.number;
  const target = reaction.targetSentTimestamp;
  const author = reaction.targetAuthorUuid?.toLowerCase() ?? "";
  return {
    messageId: ofAgent ? String(target) : messageId(target, author),
    change: {
      kind: "reaction",
      reaction: oneLine(reaction.emoji, maxNameChars),
      ofAgent,
      ...(reaction.isRemove === true ? { removed: true as const } : {}),
    },
  };
}

function quoteOf({ quote }: DataMessage, sender: string, context: ParseContext): InboundDraft["quote"] {
  if (quote == null) return undefined;
  const text = withNames(quote.text ?? "", quote.mentions ?? []);
  if (quote.authorNumber === context.number) return { text, ofAgent: true };
  return { text, ...(quote.authorUuid?.toLowerCase() === sender ? { ofSender: true } : {}) };
}

function isMentioned(mentions: DataMessage["mentions"], { number }: ParseContext): boolean {
  return (mentions ?? []).some((mention) => mention.number === number);
}

/** The text for the agent, with notes for what is not text; null: there is nothing to read. */
function textOf(message: DataMessage, context: ParseContext): string | null {
  const mentions = message.mentions ?? [];
  const [first] = mentions.toSorted((left, right) => left.start - right.start);
  const written = message.message ?? "";
  let text = withNames(written, mentions);
  // A mention of the agent at the beginning is no part of the request.
  if (first?.start === 0 && first.number === context.number) {
    const rest = withNames(written.slice(first.length), moved(mentions, first)).replace(/^[\s,:]+/, "");
    if (rest !== "" || filesOf(message).length > 0) text = rest;
  }
  if (message.viewOnce === true) return "[a view-once message, which is not kept]";
  const notes = filesOf(message).filter(isTooLarge).map(tooLargeNote);
  if (text.trim() === "" && notes.length === 0) {
    const [file] = filesOf(message);
    if (file !== undefined) return `[${kindOf(file)}]`;
    if (message.sticker != null) return "[sticker]";
    return (message.contacts ?? []).length > 0 ? "[contact]" : null;
  }
  return [text, ...notes].filter((line) => line.trim() !== "").join("\n");
}

/** The mentions after the first one, with positions in the text behind it. */
function moved(mentions: readonly Mention[], first: Mention): Mention[] {
  return mentions
    .filter((mention) => mention !== first)
    .map((mention) => ({ ...mention, start: mention.start - first.length }));
}

/** Puts names in the place of the object replacement characters that represent mentions. Mentions outside of the text are ignored. */
function withNames(text: string, mentions: readonly Mention[]): string {
  let shown = "";
  let end = 0;
  for (const mention of mentions.toSorted((left, right) => left.start - right.start)) {
    if (mention.start < end || mention.start + mention.length > text.length) continue;
    const name = oneLine(mention.name ?? mention.number ?? mention.uuid ?? "", maxNameChars);
    shown += `${text.slice(end, mention.start)}@${name === "" ? "somebody" : name}`;
    end = mention.start + mention.length;
  }
  return shown + text.slice(end);
}

function filesOf(message: DataMessage): Attachment[] {
  return message.attachments ?? [];
}

function isTooLarge({ size }: Attachment): boolean {
  return (size ?? 0) > maxAttachmentBytes;
}

function tooLargeNote(attachment: Attachment): string {
  const kind = kindOf(attachment);
  const name = attachmentName(attachment.filename ?? undefined, kind);
  return `[the ${kind} "${name}" is omitted: it is larger than ${sizeText(maxAttachmentBytes)}]`;
}

function kindOf({ contentType }: Attachment): string {
  const [kind = ""] = (contentType ?? "").split("/");
  return ["image", "video", "audio"].includes(kind) ? kind : "file";
}
