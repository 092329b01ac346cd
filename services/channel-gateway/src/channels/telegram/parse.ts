// Converts one Telegram update to a draft for the gateway. Pure: no network, no clock. It does not authorize the sender.
import type { InboundAction, InboundChange, InboundDraft } from "../channel.ts";
import { filesOf } from "./files.ts";
import {
  attachmentKinds,
  CallbackQuery,
  MembershipUpdate,
  Message,
  type Entity,
  type Update,
  type User,
} from "./update-schema.ts";

/** A pressed button, and the message with it. */
export interface ParsedAction {
  kind: "action";
  action: InboundAction;
  queryId: string;
  message: { chatId: number; messageId: number; text: string; entities: readonly unknown[] } | null;
}

export type Parsed =
  | { kind: "message"; draft: InboundDraft }
  | ParsedAction
  | { kind: "change"; change: InboundChange }
  | { kind: "skipped"; reason: string };

/** The update types requested from Telegram. */
export const allowedUpdates = ["message", "edited_message", "callback_query", "my_chat_member"] as const;

export function parse(update: Update, me: User, account: string): Parsed {
  if ("callback_query" in update) return parseAction(update, account);
  if ("my_chat_member" in update) return parseMembership(update, account);
  if ("edited_message" in update) return parseEdit(update, me, account);
  if (!("message" in update)) {
    return skipped(`unsupported update: ${Object.keys(update).find((key) => key !== "update_id") ?? "empty"}`);
  }
  const parsed = Message.safeParse(update.message);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return skipped(`invalid message at ${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}`);
  }
  const message = parsed.data;
  const sender = senderOf(message);
  if (sender === null) return skipped("no sender");
  if (sender.bot) return skipped("sent by a bot");
  const direct = message.chat.type === "private";
  const written = message.text ?? message.caption;
  const text = written === undefined ? attachmentText(message) : readable(written, message, me, direct);
  if (text === null) return skipped("no text");

  const { conversation, topic, chat } = conversationOf(message);
  const files = filesOf(message);
  return {
    kind: "message",
    draft: {
      externalId: String(update.update_id),
      messageId: String(message.message_id),
      ...(message.date === undefined ? {} : { sentAt: new Date(message.date * 1_000).toISOString() }),
      conversation,
      ...(topic === undefined || direct ? {} : { group: chat }),
      contact: sender.contact,
      direct,
      addressed: direct || isAddressed(message, me),
      text,
      ...(files.length === 0 ? {} : { files }),
      ...forwardedOf(message),
      ...quoteOf(message, me),
      ...(message.media_group_id === undefined ? {} : { album: true }),
      replyTo: {
        channel: "telegram",
        account,
        conversation,
        // No reply quote in a private chat, where it is clear what is answered.
        ...(direct ? {} : { replyToId: String(message.message_id) }),
      },
    },
  };
}

/** An edit has the form of a message, so it is read as one. */
function parseEdit({ update_id, edited_message: message }: Update, me: User, account: string): Parsed {
  const parsed = parse({ update_id, message }, me, account);
  if (parsed.kind !== "message") return parsed;
  const { externalId, messageId = "", conversation, group, contact, direct, replyTo, text } = parsed.draft;
  const where = { conversation, ...(group === undefined ? {} : { group }), contact, direct, replyTo };
  return { kind: "change", change: { externalId, messageId, ...where, change: { kind: "edited", text } } };
}

function parseMembership(update: Update, account: string): Parsed {
  const parsed = MembershipUpdate.safeParse(update.my_chat_member);
  if (!parsed.success) return skipped("invalid change of membership");
  const { chat, from, new_chat_member: member } = parsed.data;
  if (chat.type === "private") return skipped("a person blocked or unblocked the bot");
  const name = nameOf(from);
  const conversation = String(chat.id);
  return {
    kind: "change",
    change: {
      externalId: String(update.update_id),
      messageId: String(update.update_id),
      conversation,
      contact: { id: String(from.id), ...(name ? { name } : {}) },
      direct: false,
      replyTo: { channel: "telegram", account, conversation },
      change: { kind: "membership", joined: member.status !== "left" && member.status !== "kicked" },
    },
  };
}

function conversationOf(message: Message): { conversation: string; topic: number | undefined; chat: string } {
  const chat = String(message.chat.id);
  const topic = message.is_topic_message === true ? message.message_thread_id : undefined;
  return { chat, topic, conversation: topic === undefined ? chat : `${chat}:${topic}` };
}

function parseAction(update: Update, account: string): Parsed {
  const parsed = CallbackQuery.safeParse(update.callback_query);
  if (!parsed.success) return skipped("invalid callback query");
  const { id, from, message, data } = parsed.data;
  if (data === undefined || message === undefined) return skipped("a button without input or message");
  const { conversation, topic, chat } = conversationOf(message);
  const direct = message.chat.type === "private";
  const name = nameOf(from);
  return {
    kind: "action",
    queryId: id,
    message: {
      chatId: message.chat.id,
      messageId: message.message_id,
      text: message.text ?? "",
      entities: message.entities ?? [],
    },
    action: {
      externalId: `action:${id}`,
      conversation,
      ...(topic === undefined || direct ? {} : { group: chat }),
      contact: { id: String(from.id), ...(name ? { name } : {}) },
      direct,
      input: data,
      replyTo: { channel: "telegram", account, conversation },
    },
  };
}

function skipped(reason: string): Parsed {
  return { kind: "skipped", reason };
}

/** The limit for the name of a forwarded message's author. */
const maxNameChars = 200;

function nameOf({ first_name, last_name, username }: User): string | undefined {
  return [first_name, last_name].filter(Boolean).join(" ") || username;
}

/** The sender's id; for a message sent as a channel or as the group (anonymous administrators) the negative id of that chat. */
function senderOf(message: Message): { contact: InboundDraft["contact"]; bot: boolean } | null {
  const { from, sender_chat: chat } = message;
  if (chat !== undefined) {
    const name = chat.title ?? chat.username;
    return { contact: { id: String(chat.id), ...(name === undefined ? {} : { name }) }, bot: false };
  }
  if (from === undefined) return null;
  const name = nameOf(from);
  return { contact: { id: String(from.id), ...(name ? { name } : {}) }, bot: from.is_bot };
}

/** Whether the message was forwarded, and the original author if Telegram reports one. */
function forwardedOf(message: Message): Pick<InboundDraft, "forwarded"> {
  const origin = message.forward_origin;
  if (origin === undefined) return message.forward_date === undefined ? {} : { forwarded: {} };
  const chat = origin.sender_chat ?? origin.chat;
  const from = origin.sender_user === undefined ? (origin.sender_user_name ?? chat?.title) : nameOf(origin.sender_user);
  return { forwarded: from ? { from: from.slice(0, maxNameChars).toWellFormed() } : {} };
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

/** Removes the bot's name from commands and a leading mention; converts `/start` to a greeting. */
function readable(written: string, message: Message, me: User, direct: boolean): string | null {
  if (direct && /^\/start(?:@\w+)?(?:\s|$)/.test(written)) return "Hello";
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

/** The text for a message that consists only of a file. */
function attachmentText(message: Message): string | null {
  const kind = attachmentKinds.find((name) => message[name] !== undefined);
  if (kind === undefined) return null;
  const attachment = message[kind];
  const detail =
    attachment === undefined || Array.isArray(attachment) ? undefined : (attachment.file_name ?? attachment.emoji);
  return detail === undefined ? `[${kind.replace("_", " ")}]` : `[${kind.replace("_", " ")}: ${detail}]`;
}
