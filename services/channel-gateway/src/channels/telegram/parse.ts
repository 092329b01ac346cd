// Converts one Telegram update to a draft for the gateway. Pure: no network, no clock. It does not authorize the sender.
import type { InboundAction, InboundDraft, IncomingFile } from "../channel.ts";
import {
  changeOf,
  contactOf,
  invalid,
  sentAtOf,
  shownName,
  skipped,
  type ParsedInput,
  type Skipped,
} from "../parsed.ts";
import {
  Attachment,
  attachmentKinds,
  CallbackQuery,
  MembershipUpdate,
  Message,
  ReactionUpdate,
  type Entity,
  type Update,
  type User,
} from "./update-schema.ts";

/** A pressed button, and the message with it. */
export interface ParsedAction {
  kind: "action";
  action: InboundAction;
  queryId: string;
  message: Message;
}

export type Parsed = ParsedInput | ParsedAction | Skipped;

/** The update types requested from Telegram. */
export const allowedUpdates = [
  "message",
  "edited_message",
  "callback_query",
  "my_chat_member",
  "message_reaction",
] as const;

export function parse(update: Update, me: User, account: string): Parsed {
  if ("callback_query" in update) return parseAction(update, account);
  if ("my_chat_member" in update) return parseMembership(update, account);
  if ("message_reaction" in update) return parseReaction(update, account);
  if ("edited_message" in update) return parseEdit(update, me, account);
  if (!("message" in update)) {
    return skipped(`unsupported update: ${Object.keys(update).find((key) => key !== "update_id") ?? "empty"}`);
  }
  const parsed = Message.safeParse(update.message);
  if (!parsed.success) return invalid("message", parsed.error);
  const message = parsed.data;
  const sender = senderOf(message);
  if (sender === null) return skipped("no sender");
  if (sender.bot) return skipped("sent by a bot");
  const direct = message.chat.type === "private";
  const written = message.text ?? message.caption;
  const attachment = attachmentOf(message);
  const text = written === undefined ? (attachment?.text ?? null) : readable(written, message, me);
  if (text === null) return skipped("no text");
  const { replyTo, ...place } = placeOf(message, sender.contact, account);
  const { files = [] } = attachment ?? {};
  return {
    kind: "message",
    draft: {
      externalId: String(update.update_id),
      messageId: String(message.message_id),
      ...sentAtOf(message.date === undefined ? undefined : message.date * 1_000),
      ...place,
      addressed: direct || isAddressed(message, me),
      text,
      ...(files.length === 0 ? {} : { files }),
      ...forwardedOf(message),
      ...quoteOf(message, me),
      ...(message.media_group_id === undefined ? {} : { album: true }),
      // No reply quote in a private chat, where it is clear what is answered.
      replyTo: direct ? replyTo : { ...replyTo, replyToId: String(message.message_id) },
    },
  };
}

/** An edit has the form of a message, so it is read as one. */
function parseEdit({ update_id, edited_message: message }: Update, me: User, account: string): Parsed {
  const parsed = parse({ update_id, message }, me, account);
  if (parsed.kind !== "message") return parsed;
  const { externalId, messageId = "", text } = parsed.draft;
  return changeOf(parsed.draft, { externalId, messageId, change: { kind: "edited", text } });
}

function parseMembership(update: Update, account: string): Parsed {
  const parsed = MembershipUpdate.safeParse(update.my_chat_member);
  if (!parsed.success) return skipped("invalid change of membership");
  const { chat, from, new_chat_member: member } = parsed.data;
  if (chat.type === "private") return skipped("a person blocked or unblocked the bot");
  const place = placeOf({ chat }, personOf(from), account);
  const joined = member.status !== "left" && member.status !== "kicked";
  const id = String(update.update_id);
  return changeOf(place, { externalId: id, messageId: id, change: { kind: "membership", joined } });
}

/** Telegram names the message, but not its author. A reaction in a topic does not name the topic. */
function parseReaction(update: Update, account: string): Parsed {
  const parsed = ReactionUpdate.safeParse(update.message_reaction);
  if (!parsed.success) return skipped("invalid reaction");
  const { chat, user, message_id: messageId, old_reaction: before, new_reaction: now } = parsed.data;
  if (user === undefined || user.is_bot) return skipped("a reaction without a person");
  const added = now.find(({ emoji }) => !before.some((each) => each.emoji === emoji));
  if (added === undefined) return skipped("a reaction was taken back");
  const place = placeOf({ chat }, personOf(user), account);
  const change = { kind: "reaction", reaction: added.emoji ?? "an emoji of its own", ofAgent: "unknown" } as const;
  return changeOf(place, { externalId: String(update.update_id), messageId: String(messageId), change });
}

type Where = Pick<Message, "chat"> & Partial<Pick<Message, "is_topic_message" | "message_thread_id">>;

/** A topic is a conversation of its own; its group is the chat. */
function placeOf(
  { chat, is_topic_message: inTopic, message_thread_id: topic }: Where,
  contact: InboundDraft["contact"],
  account: string,
) {
  const group = String(chat.id);
  const direct = chat.type === "private";
  const isTopic = inTopic === true && topic !== undefined;
  const conversation = isTopic ? `${group}:${topic}` : group;
  return {
    conversation,
    ...(!isTopic || direct ? {} : { group }),
    contact,
    direct,
    replyTo: { channel: "telegram", account, conversation },
  };
}

function parseAction(update: Update, account: string): Parsed {
  const parsed = CallbackQuery.safeParse(update.callback_query);
  if (!parsed.success) return skipped("invalid callback query");
  const { id, from, message, data } = parsed.data;
  if (data === undefined || message === undefined) return skipped("a button without input or message");
  const action = { externalId: `action:${id}`, ...placeOf(message, personOf(from), account), input: data };
  return { kind: "action", queryId: id, message, action };
}

function personOf(user: User): InboundDraft["contact"] {
  return contactOf(String(user.id), nameOf(user));
}

function nameOf({ first_name, last_name, username }: User): string | undefined {
  return [first_name, last_name].filter(Boolean).join(" ") || username;
}

/** The sender's id; for a message sent as a channel or as the group (anonymous administrators) the negative id of that chat. */
function senderOf(message: Message): { contact: InboundDraft["contact"]; bot: boolean } | null {
  const { from, sender_chat: chat } = message;
  if (chat !== undefined) {
    return { contact: contactOf(String(chat.id), chat.title ?? chat.username), bot: false };
  }
  return from === undefined ? null : { contact: personOf(from), bot: from.is_bot };
}

/** Whether the message was forwarded, and the original author if Telegram reports one. */
function forwardedOf(message: Message): Pick<InboundDraft, "forwarded"> {
  const origin = message.forward_origin;
  if (origin === undefined) return message.forward_date === undefined ? {} : { forwarded: {} };
  const chat = origin.sender_chat ?? origin.chat;
  const user = origin.sender_user;
  const from = shownName(user === undefined ? (origin.sender_user_name ?? chat?.title) : nameOf(user));
  return { forwarded: from === undefined ? {} : { from } };
}

/** The message that this one replies to. A message in a topic formally replies to the message that created the topic. */
function quoteOf({ from, quote, reply_to_message: reply }: Message, me: User): Pick<InboundDraft, "quote"> {
  if (reply === undefined || reply.forum_topic_created !== undefined) return {};
  // `quote`: the part of the message that the sender selected.
  const text = quote?.text ?? reply.text ?? reply.caption ?? "";
  if (text === "") return {};
  const author = reply.from === undefined ? reply.sender_chat?.title : nameOf(reply.from);
  const isForwarded = reply.forward_origin !== undefined || reply.forward_date !== undefined;
  const isSenders = !isForwarded && reply.sender_chat === undefined && reply.from !== undefined;
  return {
    quote: {
      text,
      ...(author === undefined ? {} : { author }),
      ...(isSenders && reply.from?.id === me.id ? { ofAgent: true } : {}),
      ...(isSenders && reply.from?.id === from?.id ? { ofSender: true } : {}),
    },
  };
}

function entitiesOf(message: Message): { entity: Entity; text: string }[] {
  const text = message.text ?? message.caption ?? "";
  const entities = (message.text === undefined ? message.caption_entities : message.entities) ?? [];
  return entities.map((entity) => ({ entity, text: text.slice(entity.offset, entity.offset + entity.length) }));
}

function isAddressed(message: Message, me: User): boolean {
  const reply = message.reply_to_message;
  // A message in a topic formally replies to the message that created the topic.
  if (reply?.from?.id === me.id && reply.forum_topic_created === undefined) return true;
  const name = `@${me.username ?? ""}`.toLowerCase();
  return entitiesOf(message).some(({ entity, text }) => {
    if (entity.type === "text_mention") return entity.user?.id === me.id;
    if (entity.type === "mention") return text.toLowerCase() === name;
    return entity.type === "bot_command" && text.toLowerCase().endsWith(name) && text.length > name.length;
  });
}

/** Removes the bot's name from commands and a leading mention. */
function readable(written: string, message: Message, me: User): string | null {
  const name = `@${me.username ?? ""}`;
  let text = written;
  const [first] = entitiesOf(message).toSorted((left, right) => left.entity.offset - right.entity.offset);
  if (first !== undefined && first.entity.offset === 0) {
    const lower = first.text.toLowerCase();
    if (first.entity.type === "mention" && lower === name.toLowerCase()) {
      text = written.slice(first.entity.length).replace(/^[\s,:]+/, "");
    } else if (first.entity.type === "bot_command" && lower.endsWith(name.toLowerCase())) {
      text = first.text.slice(0, -name.length) + written.slice(first.entity.length);
    }
  }
  if (text.trim() !== "") return text;
  return written.trim() === "" ? null : written;
}

/** The attachment of a message: at most one, because an album is several messages. Its handle is the `file_id`. */
function attachmentOf(message: Message): { text: string; files: IncomingFile[] } | null {
  const name = attachmentKinds.find((each) => message[each] !== undefined);
  if (name === undefined) return null;
  const kind = name.replace("_", " ");
  const details = Attachment.safeParse(message[name]).data ?? {};
  const { file_id: handle, file_name: fileName, file_size: size, emoji } = details;
  const detail = fileName ?? emoji;
  return {
    text: detail === undefined ? `[${kind}]` : `[${kind}: ${detail}]`,
    files: handle === undefined ? [] : [{ handle, kind, name: fileName, bytes: size ?? null }],
  };
}
