// Sends one message to Telegram, at most once. Telegram does not deduplicate, so a message is sent again only if it certainly did not arrive.
import { z } from "zod";
import type { MessageOperations, OutboundFile, OutboundPart, SendOutcome } from "../channel.ts";
import type { RenderedText } from "../text/render.ts";
import { keyboardOf } from "./actions.ts";
import type { Answer } from "../json-api.ts";
import { messageOperationsOf } from "../message-operations.ts";
import { outcomeOf } from "../outcome.ts";
import type { Call } from "./api.ts";

const Sent = z.object({ message_id: z.number().int() });
type Target = { chat_id: number | string; message_thread_id?: number };

/** Sends a text or a file. A group that became a supergroup has a new id, which Telegram reports; the message then goes there. */
export async function sendPart(call: Call, part: OutboundPart, signal: AbortSignal): Promise<SendOutcome> {
  const target = targetOf(part.address.conversation);
  if (target === null) return { state: "dropped", reason: "not a Telegram conversation" };
  const parameters = { ...target, ...replyOf(part.address.replyToId) };
  const send = (to: typeof parameters) =>
    part.text === null
      ? sendFile(call, to, part.file, signal)
      : callWithText(call, "sendMessage", { ...to, ...keyboardOf(part.actions) }, part.text, Sent, signal);
  let answer = await send(parameters);
  if (answer.kind === "refused" && answer.code !== "") {
    answer = await send({ ...parameters, chat_id: Number(answer.code) });
  }
  if (answer.kind === "ok") return { state: "sent", providerMessageId: String(answer.result.message_id) };
  const isCorrectable = answer.kind === "refused" && /not enough rights|have no rights/i.test(answer.reason);
  return outcomeOf(answer, { attempts: part.attempts, pauses: "conversation", isCorrectable });
}

/** `<chat>[:<topic>]` */
export function targetOf(conversation: string): Target | null {
  const [, chat, thread] = /^(-?\d{1,16}|@\w+)(?::(\d{1,16}))?$/.exec(conversation) ?? [];
  if (chat === undefined) return null;
  return {
    chat_id: chat.startsWith("@") ? chat : Number(chat),
    ...(thread === undefined ? {} : { message_thread_id: Number(thread) }),
  };
}

const photoTypes: ReadonlySet<string> = new Set(["image/jpeg", "image/png", "image/webp"]);
/** Telegram's limit for a photo; as a document any file up to 50 MB is accepted. */
const maxPhotoBytes = 10 * 1024 * 1024;
/** Media types of Ogg audio; content detection returns any of them. */
const voiceTypes: ReadonlySet<string> = new Set(["audio/ogg", "audio/opus", "application/ogg"]);
const audioTypes: ReadonlySet<string> = new Set(["audio/mpeg", "audio/mp4", "audio/x-m4a"]);

/** The upload method that shows a file type best. A file that Telegram refuses in this form is sent as a document. */
function shownAs({ mediaType, content }: OutboundFile): { method: string; parameter: string; refusal: RegExp } | null {
  if (photoTypes.has(mediaType) && content.length <= maxPhotoBytes)
    return { method: "sendPhoto", parameter: "photo", refusal: /photo|image/i };
  if (voiceTypes.has(mediaType)) return { method: "sendVoice", parameter: "voice", refusal: /voice|audio/i };
  return audioTypes.has(mediaType) ? { method: "sendAudio", parameter: "audio", refusal: /audio/i } : null;
}

async function sendFile(
  call: Call,
  parameters: Target,
  file: OutboundFile | undefined,
  signal: AbortSignal,
): Promise<Answer<{ message_id: number }>> {
  if (file === undefined) return { kind: "unreached", reason: "the message has neither text nor file" };
  const upload = (method: string, parameter: string) => call(method, parameters, Sent, signal, { [parameter]: file });
  const shown = shownAs(file);
  if (shown === null) return upload("sendDocument", "document");
  const answer = await upload(shown.method, shown.parameter);
  const notShown = answer.kind === "refused" && answer.status === 400 && shown.refusal.test(answer.reason);
  return notShown ? upload("sendDocument", "document") : answer;
}

function replyOf(replyToId: string | undefined) {
  if (replyToId === undefined || !/^\d+$/.test(replyToId)) return {};
  return { reply_parameters: { message_id: Number(replyToId), allow_sending_without_reply: true } };
}

/** Calls a method with a text: with its markup, or without it when Telegram refuses the markup. */
async function callWithText<Result>(
  call: Call,
  method: string,
  target: object,
  { text, plain, ranges }: RenderedText,
  result: z.ZodType<Result>,
  signal: AbortSignal,
): Promise<Answer<Result>> {
  const parameters = { ...target, link_preview_options: { is_disabled: true } };
  if (ranges.length > 0) {
    const answer = await call(method, { ...parameters, text, parse_mode: "HTML" }, result, signal);
    const misread = answer.kind === "refused" && answer.status === 400 && /can't parse entities/i.test(answer.reason);
    if (!misread) return answer;
  }
  return call(method, { ...parameters, text: plain }, result, signal);
}

export function messageOperations(call: Call): MessageOperations {
  return messageOperationsOf("Telegram", {
    messageOf: (conversation, messageId) => {
      const chat = targetOf(conversation)?.chat_id;
      return chat === undefined || !/^\d+$/.test(messageId) ? null : { chat_id: chat, message_id: Number(messageId) };
    },
    edit: (message, text, signal) => callWithText(call, "editMessageText", message, text, z.unknown(), signal),
    remove: (message, signal) => call("deleteMessage", message, z.unknown(), signal),
    react: (message, emoji, signal) => {
      const reaction = emoji === null ? [] : [{ type: "emoji", emoji }];
      return call("setMessageReaction", { ...message, reaction }, z.unknown(), signal);
    },
    // One that has the text already counts as edited.
    isDone: ({ reason }) => /message is not modified|message to delete not found/i.test(reason),
  });
}
