// The methods of the Bot API that the fake supports, each as strict about its parameters as the real one. No HTTP in this file.
import { z } from "zod";
import { chatId, contentOf, shown, unreachable, whole, type Bot } from "./message.ts";
import { deleteMessage, editMessageText, editReplyMarkup, setReaction } from "./edits.ts";
import { answerPress, buttonsOf, setCommands } from "./buttons.ts";
import { badRequest, done, json, type MethodResult } from "./results.ts";
import type { SentMessage, TelegramState } from "./state.ts";

const SendMessage = z.object({
  chat_id: chatId,
  message_thread_id: whole.optional(),
  text: z.string().default(""),
  parse_mode: z.string().optional(),
  reply_parameters: json(
    z.object({ message_id: z.number().int(), allow_sending_without_reply: z.boolean().optional() }),
  ).optional(),
  reply_markup: z.unknown().optional(),
});
const SendFile = z.object({
  chat_id: chatId,
  message_thread_id: whole.optional(),
  caption: z.string().max(1024).default(""),
  reply_parameters: SendMessage.shape.reply_parameters,
});
/** Limits of the real API, in bytes. */
const largestPhoto = 10 * 1024 * 1024;
const largestUpload = 50 * 1024 * 1024;
const largestDownload = 20 * 1024 * 1024;
const ChatAction = z.object({ chat_id: chatId, action: z.string() });
const SetWebhook = z.object({
  url: z.string(),
  secret_token: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,256}$/)
    .optional(),
  allowed_updates: json(z.array(z.string())).optional(),
  drop_pending_updates: z.coerce.boolean().default(false),
});
const actions = new Set([
  "typing",
  "upload_photo",
  "record_video",
  "upload_video",
  "record_voice",
  "upload_voice",
  "upload_document",
  "choose_sticker",
  "find_location",
  "record_video_note",
  "upload_video_note",
]);

/** A file of a multipart request, as `server.ts` parses it. */
const UploadedFile = z.object({ name: z.string(), mediaType: z.string(), content: z.instanceof(Buffer) });

/** Runs a method. Returns null for an unknown name; getUpdates is handled in `server.ts`, because it waits. */
export function callMethod(
  method: string,
  parameters: Record<string, unknown>,
  state: TelegramState,
  bot: Bot,
): MethodResult | null {
  switch (method) {
    case "getMe":
      return done({
        id: bot.id,
        is_bot: true,
        first_name: "Parley",
        username: bot.username,
        can_join_groups: true,
        can_read_all_group_messages: false,
        supports_inline_queries: false,
      });
    case "sendMessage":
      return sendMessage(parameters, state, bot);
    case "sendPhoto":
      return sendFile("photo", parameters, state, bot);
    case "sendVoice":
      return sendFile("voice", parameters, state, bot);
    case "sendAudio":
      return sendFile("audio", parameters, state, bot);
    case "sendDocument":
      return sendFile("document", parameters, state, bot);
    case "getFile": {
      const path = state.fileIds.get(String(parameters.file_id));
      const content = path === undefined ? undefined : state.files.get(path);
      if (content === undefined) return badRequest("wrong file_id or the file is temporarily unavailable");
      if (content.length > largestDownload) return badRequest("file is too big");
      return done({ file_id: parameters.file_id, file_unique_id: "u", file_size: content.length, file_path: path });
    }
    case "editMessageText":
      return editMessageText(parameters, state, bot);
    case "editMessageReplyMarkup":
      return editReplyMarkup(parameters, state, bot);
    case "deleteMessage":
      return deleteMessage(parameters, state);
    case "setMessageReaction":
      return setReaction(parameters, state);
    case "answerCallbackQuery":
      return answerPress(parameters, state);
    case "setMyCommands":
      return setCommands(parameters, state);
    case "sendChatAction": {
      const given = ChatAction.safeParse(parameters);
      if (!given.success) return badRequest("chat_id is empty");
      if (!actions.has(given.data.action)) return badRequest("wrong parameter action in request");
      return unreachable(given.data.chat_id, state) ?? done(true);
    }
    case "setWebhook": {
      const given = SetWebhook.safeParse(parameters);
      if (!given.success) return badRequest("bad webhook: parameters are wrong");
      const { url, secret_token: secretToken = null, allowed_updates: allowedUpdates = null } = given.data;
      if (given.data.drop_pending_updates) state.confirmBefore(Number.MAX_SAFE_INTEGER);
      if (url !== "" && !/^https:\/\/|^http:\/\/(?:127\.0\.0\.1|localhost)[:/]/.test(url)) {
        return badRequest("bad webhook: An HTTPS URL must be provided for webhook");
      }
      state.webhook = url === "" ? null : { url, secretToken, allowedUpdates };
      state.changed();
      return done(true);
    }
    case "deleteWebhook":
      if (parameters.drop_pending_updates === true) state.confirmBefore(Number.MAX_SAFE_INTEGER);
      state.webhook = null;
      state.changed();
      return done(true);
    case "getWebhookInfo":
      return done({
        url: state.webhook?.url ?? "",
        has_custom_certificate: false,
        pending_update_count: state.updates.length,
      });
    default:
      return null;
  }
}

function sendMessage(parameters: Record<string, unknown>, state: TelegramState, bot: Bot): MethodResult {
  const given = SendMessage.safeParse(parameters);
  if (!given.success) return badRequest("chat_id is empty");
  const { chat_id: chat, message_thread_id: threadId = null, reply_parameters: reply } = given.data;
  const refused = unreachable(chat, state);
  if (refused !== null) return refused;
  const content = contentOf(given.data.text, given.data.parse_mode);
  if ("status" in content) return content;
  const buttons = buttonsOf(given.data.reply_markup);
  if ("status" in buttons) return buttons;
  const message: SentMessage = {
    buttons,
    messageId: state.nextMessageId(),
    chatId: chat,
    threadId,
    replyToId: reply?.message_id ?? null,
    ...content,
    parseMode: given.data.parse_mode ?? null,
  };
  state.sent.push(message);
  state.changed();
  return done(shown(message, bot));
}

/** A file is a part of a multipart form, which `server.ts` has parsed. */
function sendFile(
  kind: NonNullable<SentMessage["file"]>["kind"],
  parameters: Record<string, unknown>,
  state: TelegramState,
  bot: Bot,
): MethodResult {
  const given = SendFile.safeParse(parameters);
  if (!given.success) return badRequest("chat_id is empty");
  const { chat_id: chat, message_thread_id: threadId = null, reply_parameters: reply } = given.data;
  const refused = unreachable(chat, state);
  if (refused !== null) return refused;
  const file = UploadedFile.safeParse(parameters[kind]);
  if (!file.success) return badRequest(`there is no ${kind} in the request`);
  const { content, name, mediaType } = file.data;
  if (content.length === 0) return badRequest("file must be non-empty");
  if (kind === "photo" && content.length > largestPhoto) return badRequest("file is too big for a photo");
  if (kind === "photo" && !/^image\/(jpeg|png|webp)$/.test(mediaType)) return badRequest("IMAGE_PROCESS_FAILED");
  if (kind === "voice" && !/^(audio\/(ogg|opus|mpeg|mp4)|application\/ogg)$/.test(mediaType))
    return badRequest("wrong type of the voice message");
  if (content.length > largestUpload) return { status: 413, description: "Request Entity Too Large" };
  const message: SentMessage = {
    messageId: state.nextMessageId(),
    chatId: chat,
    threadId,
    replyToId: reply?.message_id ?? null,
    text: given.data.caption,
    entities: [],
    parseMode: null,
    buttons: [],
    file: { kind, name, mediaType, content },
  };
  state.sent.push(message);
  state.changed();
  return done(shown(message, bot));
}
