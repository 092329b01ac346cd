// Sends one answer as one or more Telegram messages, in order, each at most once. Telegram does not deduplicate, so a message is sent
// again only if it certainly did not arrive.
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { telegramChannel } from "@parley/contracts";
import type { OutboundFile, OutboundText, SendOutcome } from "../channel.ts";
import { richTextOf, type RichText } from "../text/rich-text.ts";
import { splitRichText } from "../text/split.ts";
import type { Answer, Call } from "./api.ts";
import { htmlOf } from "./html.ts";

const { maxLength: maxTextLength } = telegramChannel.capabilities.text;
/** Keeps a call of `send` below the gateway's timeout; remaining parts are left for the next attempt or abandoned. */
const sendingMs = 7_000;
const goOnMs = 100;
const remembered = 1_000;

const Sent = z.object({ message_id: z.number().int() });
type Target = { chat_id: number | string; message_thread_id?: number };

interface Progress {
  parts: number;
  firstId: string | null;
  chatId: string | null;
}

/**
 * Creates the function that sends texts. It keeps the progress of a long text in memory, by idempotency key, so that a retry continues.
 * After a crash between two parts the outcome is unknown, as documented. `resumable`: retries reach this process, because it alone sends
 * for the account; otherwise a partially sent text is not sent again.
 */
export function createSender(
  call: Call,
  resumable: boolean,
): (message: OutboundText, signal: AbortSignal) => Promise<SendOutcome> {
  const begun = new Map<string, Progress>();

  return async (message, signal) => {
    const target = targetOf(message.address.conversation);
    if (target === null) return { state: "dropped", reason: "not a Telegram conversation" };
    if (message.file !== undefined) return sendFile(call, target, { ...message, file: message.file }, signal);
    const parts = splitRichText(richTextOf(message.text), maxTextLength);
    if (parts.length === 0) return { state: "dropped", reason: "empty text" };
    const progress = begun.get(message.idempotencyKey) ?? { parts: 0, firstId: null, chatId: null };
    begun.delete(message.idempotencyKey);
    const untilMs = performance.now() + sendingMs;

    while (progress.parts < parts.length) {
      const part = parts[progress.parts] ?? { text: "", ranges: [] };
      const first = progress.parts === 0;
      if (!first && resumable && performance.now() > untilMs) {
        remember(begun, message.idempotencyKey, progress);
        return {
          state: "retry",
          afterMs: goOnMs,
          reason: `${progress.parts} of ${parts.length} parts sent so far`,
        };
      }
      if (progress.chatId !== null) target.chat_id = Number(progress.chatId);
      const answer = await sendPart(call, target, part, first ? message.address.replyToId : undefined, signal);
      if (answer.kind === "ok") {
        progress.parts += 1;
        progress.firstId ??= String(answer.result.message_id);
        continue;
      }
      if (answer.kind === "refused" && answer.movedTo !== null && progress.chatId === null) {
        progress.chatId = answer.movedTo;
        continue;
      }
      const outcome = outcomeOf(answer, message.attempts);
      if (first) return outcome;
      const told = partly(outcome, progress.parts, parts.length);
      if (outcome.state !== "retry") return told;
      const waited =
        performance.now() + outcome.afterMs <= untilMs &&
        !signal.aborted &&
        (await delay(outcome.afterMs, true, { signal }).catch(() => false));
      if (waited) continue;
      if (!resumable) return { state: "unknown", reason: told.reason };
      remember(begun, message.idempotencyKey, progress);
      return told;
    }
    return { state: "sent", providerMessageId: progress.firstId };
  };
}

function remember(begun: Map<string, Progress>, key: string, progress: Progress): void {
  begun.set(key, progress);
  const [oldest] = begun.keys();
  if (begun.size > remembered && oldest !== undefined) begun.delete(oldest);
}

function partly(
  outcome: Exclude<SendOutcome, { state: "sent" }>,
  done: number,
  all: number,
): Exclude<SendOutcome, { state: "sent" }> {
  return { ...outcome, reason: `${done} of ${all} parts sent, then: ${outcome.reason}` };
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
  target: Target,
  { address, file, attempts }: OutboundText & { file: OutboundFile },
  signal: AbortSignal,
): Promise<SendOutcome> {
  const parameters = { ...target, ...replyOf(address.replyToId) };
  const upload = (method: string, parameter: string) => call(method, parameters, Sent, signal, { parameter, ...file });
  const shown = shownAs(file);
  let answer = await (shown === null ? upload("sendDocument", "document") : upload(shown.method, shown.parameter));
  const notShown =
    shown !== null && answer.kind === "refused" && answer.status === 400 && shown.refusal.test(answer.description);
  if (notShown) answer = await upload("sendDocument", "document");
  if (answer.kind === "refused" && answer.movedTo !== null) {
    parameters.chat_id = Number(answer.movedTo);
    answer = await upload("sendDocument", "document");
  }
  if (answer.kind === "ok") return { state: "sent", providerMessageId: String(answer.result.message_id) };
  return outcomeOf(answer, attempts);
}

function replyOf(replyToId: string | undefined) {
  if (replyToId === undefined || !/^\d+$/.test(replyToId)) return {};
  return { reply_parameters: { message_id: Number(replyToId), allow_sending_without_reply: true } };
}

async function sendPart(
  call: Call,
  target: Target,
  part: RichText,
  replyToId: string | undefined,
  signal: AbortSignal,
): Promise<Answer<{ message_id: number }>> {
  const rest = {
    ...target,
    link_preview_options: { is_disabled: true },
    ...replyOf(replyToId),
  };
  if (part.ranges.length > 0) {
    const answer = await call("sendMessage", { ...rest, text: htmlOf(part), parse_mode: "HTML" }, Sent, signal);
    const misread =
      answer.kind === "refused" && answer.status === 400 && /can't parse entities/i.test(answer.description);
    if (!misread) return answer;
  }
  return call("sendMessage", { ...rest, text: part.text }, Sent, signal);
}

/** Converts a failed call to the delivery outcome of its message. */
function outcomeOf(
  answer: Exclude<Answer<unknown>, { kind: "ok" }>,
  attempts: number,
): Exclude<SendOutcome, { state: "sent" }> {
  const backoffMs = Math.min(1_000 * 2 ** attempts, 60_000);
  if (answer.kind === "unreached") return { state: "retry", afterMs: backoffMs, reason: answer.reason };
  if (answer.kind === "lost") return { state: "unknown", reason: answer.reason };
  const { status, description: reason } = answer;
  if (status === 429) return { state: "retry", afterMs: answer.retryAfterMs ?? backoffMs, reason };
  // A proxy timed out, but the platform may have accepted the message.
  if (status === 504) return { state: "unknown", reason };
  if (status >= 500) return { state: "retry", afterMs: answer.retryAfterMs ?? backoffMs, reason };
  // The token is refused; the message can be sent once the token is corrected.
  if (status === 401 || status === 404) return { state: "retry", afterMs: 60_000, reason };
  return { state: "dropped", reason };
}
