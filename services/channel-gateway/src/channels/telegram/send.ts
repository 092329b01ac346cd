// Sends one message to Telegram, at most once. Telegram does not deduplicate, so a message is sent again only if it certainly did not arrive.
import { z } from "zod";
import type { MessageOperations, OutboundFile, OutboundPart, SendOutcome } from "../channel.ts";
import type { RenderedText } from "../text/render.ts";
import type { Answer } from "../json-api.ts";
import { messageOperationsOf } from "../message-operations.ts";
import { outcomeOf, type OutcomeRules } from "../outcome.ts";
import type { Call } from "./api.ts";

const Sent = z.object({ message_id: z.number().int() });
/** A 429 does not say whether it is about the chat or about the bot, so the bot pauses: no call of it precedes Retry-After. */
const limits = { pauses: "account" } satisfies OutcomeRules;
type Target = { chat_id: number | string; message_thread_id?: number };

/** Sends a text or a file. A group that became a supergroup has a new id, which Telegram reports; the message then goes there. */
export async function sendPart(call: Call, part: OutboundPart, signal: AbortSignal): Promise<SendOutcome> {
  const target = targetOf(part.address.conversation);
  if (target === null) return { state: "dropped", reason: "not a Telegram conversation" };
  const parameters = { ...target, ...replyOf(part.address.replyToId) };
  const send = (to: typeof parameters) =>
    part.text === null
      ? sendFile(call, to, part.file, signal)
      : callWithText(call, "sendMessage", { ...to, ...keyboardOf(part.actions) }, part.text, signal);
  let answer = await send(parameters);
  if (answer.kind === "refused" && answer.code !== "")
    answer = await send({ ...parameters, chat_id: Number(answer.code) });
  if (answer.kind === "ok") return { state: "sent", providerMessageId: String(answer.result.message_id) };
  const isCorrectable = answer.kind === "refused" && /not enough rights|have no rights/i.test(answer.reason);
  return outcomeOf(answer, { ...limits, attempts: part.attempts, isCorrectable });
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

/** Telegram's limit for a photo; as a document any file up to 50 MB is accepted. */
const maxPhotoBytes = 10 * 1024 * 1024;

/** The upload method that shows a file type best. A file that Telegram refuses in this form is sent as a document. */
function shownAs({ mediaType, content }: OutboundFile): { method: string; parameter: string; refusal: RegExp } | null {
  if (/^image\/(?:jpeg|png|webp)$/.test(mediaType) && content.length <= maxPhotoBytes)
    return { method: "sendPhoto", parameter: "photo", refusal: /photo|image/i };
  // The media types of Ogg audio; content detection returns any of them.
  if (/^(?:audio\/(?:ogg|opus)|application\/ogg)$/.test(mediaType))
    return { method: "sendVoice", parameter: "voice", refusal: /voice|audio/i };
  const isAudio = /^audio\/(?:mpeg|mp4|x-m4a)$/.test(mediaType);
  return isAudio ? { method: "sendAudio", parameter: "audio", refusal: /audio/i } : null;
}

type Sending = Promise<Answer<z.infer<typeof Sent>>>;

async function sendFile(call: Call, to: Target, file: OutboundFile | undefined, signal: AbortSignal): Sending {
  if (file === undefined) return { kind: "unreached", reason: "the message has neither text nor file" };
  const upload = (method: string, parameter: string) => call(method, to, Sent, signal, { [parameter]: file });
  const shown = shownAs(file);
  if (shown === null) return upload("sendDocument", "document");
  const answer = await upload(shown.method, shown.parameter);
  return isBecauseOf(answer, shown.refusal) ? upload("sendDocument", "document") : answer;
}

/** Whether Telegram refused the form of a request, with such a reason. */
function isBecauseOf(answer: Answer<unknown>, reason: RegExp): boolean {
  return answer.kind === "refused" && answer.status === 400 && reason.test(answer.reason);
}

const maxInRow = 3;

/** The parameter of a message with buttons; empty without. */
function keyboardOf(actions: OutboundPart["actions"]) {
  if (actions === undefined) return {};
  const buttons = actions.map(({ label, input }) => ({ text: label, callback_data: input }));
  const rows = buttons.length <= maxInRow ? [buttons] : buttons.map((button) => [button]);
  return { reply_markup: { inline_keyboard: rows } };
}

function replyOf(replyToId: string | undefined) {
  if (replyToId === undefined || !/^\d+$/.test(replyToId)) return {};
  return { reply_parameters: { message_id: Number(replyToId), allow_sending_without_reply: true } };
}

/** Calls a method with a text: with its markup, or without it when Telegram refuses the markup. */
async function callWithText(call: Call, method: string, to: object, text: RenderedText, signal: AbortSignal): Sending {
  const parameters = { ...to, link_preview_options: { is_disabled: true } };
  if (text.ranges.length > 0) {
    const answer = await call(method, { ...parameters, text: text.text, parse_mode: "HTML" }, Sent, signal);
    if (!isBecauseOf(answer, /can't parse entities/i)) return answer;
  }
  return call(method, { ...parameters, text: text.plain }, Sent, signal);
}

export function messageOperations(call: Call): MessageOperations {
  return messageOperationsOf("Telegram", {
    messageOf: (conversation, messageId) => {
      const chat = targetOf(conversation)?.chat_id;
      return chat === undefined || !/^\d+$/.test(messageId) ? null : { chat_id: chat, message_id: Number(messageId) };
    },
    edit: (message, text, signal) => callWithText(call, "editMessageText", message, text, signal),
    remove: (message, signal) => call("deleteMessage", message, z.unknown(), signal),
    react: (message, emoji, signal) => {
      const reaction = emoji === null ? [] : [{ type: "emoji", emoji }];
      return call("setMessageReaction", { ...message, reaction }, z.unknown(), signal);
    },
    // One that has the text already counts as edited.
    isDone: ({ reason }) => /message is not modified|message to delete not found/i.test(reason),
    rulesOf: () => limits,
  });
}
