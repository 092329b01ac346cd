// Converts one Telegram update to a draft for the gateway. Pure: no network, no clock. It does not authorize the sender.
import type { z } from "zod";
import type { InboundAction, InboundDraft, IncomingFile } from "../channel.ts";
import { changeOf, contactOf, forwardedFrom, invalid, quoteOf, sentAtOf, skipped, type Parsed } from "../parsed.ts";
import { Attachment, attachmentKinds, Membership, Message, Press, Reaction } from "./update-schema.ts";
import type { Party, Update } from "./update-schema.ts";

/** A pressed button, and the message with it. */
export interface ParsedPress {
  kind: "action";
  action: InboundAction;
  queryId: string;
  message: Message;
}

type ParsedUpdate = Parsed | ParsedPress;

interface UpdateContext {
  updateId: string;
  me: Party;
  account: string;
}

/** A parser of what an update contains under its kind. */
function parserOf<Data>(
  what: string,
  schema: z.ZodType<Data>,
  parse: (data: Data, updateContext: UpdateContext) => ParsedUpdate,
) {
  return (data: unknown, updateContext: UpdateContext): ParsedUpdate => {
    const parsed = schema.safeParse(data);
    return parsed.success ? parse(parsed.data, updateContext) : invalid(what, parsed.error);
  };
}

const parsers = {
  message: parserOf("message", Message, parseMessage),
  edited_message: parserOf("message", Message, parseEdit),
  callback_query: parserOf("press of a button", Press, parsePress),
  my_chat_member: parserOf("change of membership", Membership, parseMembership),
  message_reaction: parserOf("reaction", Reaction, parseReaction),
};

/** The update types requested from Telegram. */
export const allowedUpdates = Object.keys(parsers);

export function parse(update: Update, me: Party, account: string): ParsedUpdate {
  for (const [kind, parser] of Object.entries(parsers))
    if (kind in update) return parser(update[kind], { updateId: String(update.update_id), me, account });
  return skipped(`unsupported update: ${Object.keys(update).find((key) => key !== "update_id") ?? "empty"}`);
}

function parseMessage(message: Message, { updateId, me, account }: UpdateContext): ParsedUpdate {
  // A message that is sent as a channel, or by an anonymous administrator as the group, is that chat's.
  const sender = message.sender_chat ?? message.from;
  if (sender === undefined) return skipped("no sender");
  if (sender.is_bot) return skipped("sent by a bot");
  const { replyTo, ...place } = placeOf(message, sender, account);
  const { direct } = place;
  const { name, files } = attachmentOf(message);
  const written = message.text ?? message.caption ?? "";
  const text = written.trim() === "" ? name : readable(written, me);
  if (text === null) return skipped("no text");
  return {
    kind: "message",
    draft: {
      externalId: updateId,
      messageId: String(message.message_id),
      ...sentAtOf(message.date === undefined ? undefined : message.date * 1_000),
      ...place,
      addressed: direct || isAddressed(message, me),
      text,
      ...(files.length === 0 ? {} : { files }),
      ...forwardedOf(message),
      ...quotedBy(message, me),
      ...(message.media_group_id === undefined ? {} : { album: true }),
      // No reply quote in a private chat, where it is clear what is answered.
      replyTo: direct ? replyTo : { ...replyTo, replyToId: String(message.message_id) },
    },
  };
}

function parseEdit(message: Message, updateContext: UpdateContext): ParsedUpdate {
  const parsed = parseMessage(message, updateContext);
  if (parsed.kind !== "message") return parsed;
  const { externalId, messageId = "", text } = parsed.draft;
  return changeOf(parsed.draft, { externalId, messageId, change: { kind: "edited", text } });
}

function parseMembership(
  { chat, from, new_chat_member: member }: z.infer<typeof Membership>,
  about: UpdateContext,
): ParsedUpdate {
  if (chat.type === "private") return skipped("a person blocked or unblocked the bot");
  const joined = member.status !== "left" && member.status !== "kicked";
  const ids = { externalId: about.updateId, messageId: about.updateId };
  return changeOf(placeOf({ chat }, from, about.account), { ...ids, change: { kind: "membership", joined } });
}

/** Telegram names the message, but not its author. A reaction in a topic does not name the topic. */
function parseReaction(
  { chat, user, message_id, old_reaction, new_reaction }: z.infer<typeof Reaction>,
  about: UpdateContext,
): ParsedUpdate {
  if (user === undefined || user.is_bot) return skipped("a reaction without a person");
  const added = new_reaction.find(({ emoji }) => !old_reaction.some((each) => each.emoji === emoji));
  if (added === undefined) return skipped("a reaction was taken back");
  const change = { kind: "reaction", reaction: added.emoji ?? "an emoji of its own", ofAgent: "unknown" } as const;
  const ids = { externalId: about.updateId, messageId: String(message_id) };
  return changeOf(placeOf({ chat }, user, about.account), { ...ids, change });
}

function parsePress({ id, from, message, data }: z.infer<typeof Press>, { account }: UpdateContext): ParsedUpdate {
  if (data === undefined || message === undefined) return skipped("a button without input or message");
  const action = { externalId: `action:${id}`, ...placeOf(message, from, account), input: data };
  return { kind: "action", queryId: id, message, action };
}

type Place = Pick<Message, "chat" | "is_topic_message" | "message_thread_id">;

/** A topic is a conversation of its own; its group is the chat. */
function placeOf({ chat, is_topic_message, message_thread_id: topic }: Place, person: Party, account: string) {
  const group = String(chat.id);
  const direct = chat.type === "private";
  const isTopic = is_topic_message === true && topic !== undefined;
  const conversation = isTopic ? `${group}:${topic}` : group;
  return {
    conversation,
    ...(!isTopic || direct ? {} : { group }),
    contact: contactOf(String(person.id), nameOf(person)),
    direct,
    replyTo: { channel: "telegram", account, conversation },
  };
}

function nameOf({ first_name, last_name, title, username }: Party): string | undefined {
  return [first_name, last_name].filter(Boolean).join(" ") || (title ?? username);
}

type Forwardable = Pick<Message, "forward_origin" | "forward_date">;

/** That a message was forwarded, and the original author if Telegram reports one. */
function forwardedOf({ forward_origin: origin, forward_date: date }: Forwardable): Pick<InboundDraft, "forwarded"> {
  if (origin === undefined) return date === undefined ? {} : forwardedFrom(undefined);
  const author = origin.sender_user ?? origin.sender_chat ?? origin.chat;
  return forwardedFrom(author === undefined ? origin.sender_user_name : nameOf(author));
}

/** The message that this one replies to. A message in a topic formally replies to the message that created the topic. */
function quotedBy({ from, quote, reply_to_message: reply }: Message, me: Party): Pick<InboundDraft, "quote"> {
  if (reply === undefined || reply.forum_topic_created !== undefined) return {};
  const author = reply.from ?? reply.sender_chat;
  const isOthers = reply.sender_chat !== undefined || forwardedOf(reply).forwarded !== undefined;
  const writer = isOthers ? undefined : reply.from?.id;
  return quoteOf(quote?.text ?? reply.text ?? reply.caption, {
    author: author && nameOf(author),
    ofAgent: writer === me.id,
    ofSender: writer !== undefined && writer === from?.id,
  });
}

function isAddressed(message: Message, me: Party): boolean {
  const { reply_to_message: reply, text, caption = "", entities, caption_entities: inCaption } = message;
  if (reply?.from?.id === me.id && reply.forum_topic_created === undefined) return true;
  const name = `@${me.username ?? ""}`.toLowerCase();
  const marked = (text === undefined ? inCaption : entities) ?? [];
  return marked.some(({ type, offset, length, user }) => {
    if (type === "text_mention") return user?.id === me.id;
    const named = (text ?? caption).slice(offset, offset + length).toLowerCase();
    if (type === "mention") return named === name;
    return type === "bot_command" && named.endsWith(name) && named.length > name.length;
  });
}

/** The text without the bot's name at its start or behind its command. */
function readable(written: string, { username = "" }: Party): string {
  const [, command = "", name, rest = ""] = /^(\/\w+)?@(\w+)([^]*)$/.exec(written) ?? [];
  if (name?.toLowerCase() !== username.toLowerCase()) return written;
  const text = command === "" ? rest.replace(/^[\s,:]+/, "") : command + rest;
  return text.trim() === "" ? written : text;
}

/** The attachment of a message: at most one, because an album is several messages. Its handle is the `file_id`. */
function attachmentOf(message: Message): { name: string | null; files: IncomingFile[] } {
  const found = attachmentKinds.find((each) => message[each] !== undefined);
  if (found === undefined) return { name: null, files: [] };
  const kind = found.replace("_", " ");
  // The largest size of a photo is the last.
  const details = Attachment.safeParse([message[found]].flat().at(-1)).data ?? {};
  const { file_id: handle, file_name: fileName, file_size: size, emoji } = details;
  const detail = fileName ?? emoji;
  return {
    name: detail === undefined ? `[${kind}]` : `[${kind}: ${detail}]`,
    files: handle === undefined ? [] : [{ handle, kind, name: fileName, bytes: size ?? null }],
  };
}
