// Changes of messages: their text and buttons, deletion and reactions, as strict as the real service.
import { z } from "zod";
import { buttonsOf } from "./buttons.ts";
import { chatId, contentOf, shown, unreachable, whole, type Bot } from "./message.ts";
import { badRequest, done, json, type MethodResult } from "./results.ts";
import type { TelegramState } from "./state.ts";

const EditMessage = z.object({
  chat_id: chatId,
  message_id: whole,
  text: z.string().default(""),
  parse_mode: z.string().optional(),
  entities: json(z.array(z.looseObject({ type: z.string(), offset: whole, length: whole }))).optional(),
  reply_markup: z.unknown().optional(),
});
const DeleteMessage = z.object({ chat_id: chatId, message_id: whole });
const SetReaction = z.object({
  chat_id: chatId,
  message_id: whole,
  reaction: json(z.array(z.object({ type: z.literal("emoji"), emoji: z.string() })).max(1)).default([]),
});
/** Some of the emoji that the API accepts as reactions; it refuses any other text. */
const reactions = new Set(["👀", "👍", "👎", "❤", "🔥", "🤔", "⚡", "✍", "👌", "🙏", "🎉"]);

export function editMessageText(parameters: Record<string, unknown>, state: TelegramState, bot: Bot): MethodResult {
  const given = EditMessage.safeParse(parameters);
  if (!given.success) return badRequest("message identifier is not specified");
  const { chat_id: chat, message_id: messageId } = given.data;
  const message = state.sent.find((one) => one.messageId === messageId && one.chatId === chat);
  if (message === undefined) return badRequest("message to edit not found");
  const content = contentOf(given.data.text, given.data.parse_mode);
  if ("status" in content) return content;
  const buttons = buttonsOf(given.data.reply_markup);
  if ("status" in buttons) return buttons;
  const unchangedButtons = JSON.stringify(buttons) === JSON.stringify(message.buttons);
  if (
    unchangedButtons &&
    content.text === message.text &&
    JSON.stringify(content.entities) === JSON.stringify(message.entities)
  ) {
    return badRequest(
      "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message",
    );
  }
  // Entities are those of the new text; without a parse mode they can be given directly.
  const entities = given.data.entities ?? content.entities;
  Object.assign(message, content, { buttons, entities });
  state.changed();
  return done(shown(message, bot));
}

export function editReplyMarkup(parameters: Record<string, unknown>, state: TelegramState, bot: Bot): MethodResult {
  const given = EditMessage.safeParse(parameters);
  if (!given.success) return badRequest("message identifier is not specified");
  const { chat_id: chat, message_id: messageId } = given.data;
  const message = state.sent.find((one) => one.messageId === messageId && one.chatId === chat);
  if (message === undefined) return badRequest("message to edit not found");
  const buttons = buttonsOf(given.data.reply_markup);
  if ("status" in buttons) return buttons;
  message.buttons = buttons;
  state.changed();
  return done(shown(message, bot));
}

export function deleteMessage(parameters: Record<string, unknown>, state: TelegramState): MethodResult {
  const given = DeleteMessage.safeParse(parameters);
  if (!given.success) return badRequest("message identifier is not specified");
  const { chat_id: chat, message_id: messageId } = given.data;
  const at = state.sent.findIndex((one) => one.messageId === messageId && one.chatId === chat);
  if (at === -1) return badRequest("message to delete not found");
  state.deleted.push(...state.sent.splice(at, 1));
  state.changed();
  return done(true);
}

export function setReaction(parameters: Record<string, unknown>, state: TelegramState): MethodResult {
  const given = SetReaction.safeParse(parameters);
  if (!given.success) return badRequest("message identifier is not specified");
  const { chat_id: chat, message_id: messageId, reaction } = given.data;
  const refused = unreachable(chat, state);
  if (refused !== null) return refused;
  const emoji = reaction[0]?.emoji ?? null;
  if (emoji !== null && !reactions.has(emoji)) return badRequest("REACTION_INVALID");
  state.reactions.push({ chatId: chat, messageId, emoji });
  state.changed();
  return done(true);
}
