// Sends one message through the daemon, at most once. Signal does not deduplicate, so a message is sent again only if it certainly did not
// arrive.
import { z } from "zod";
import type { MessageOperations, OutboundPart, SendOutcome } from "../channel.ts";
import { outcomeOf } from "../outcome.ts";
import type { RenderedText } from "../text/render.ts";
import type { Range } from "../text/rich-text.ts";
import type { Call } from "./rpc.ts";

/** The timestamp is the id of the message. */
const SendResult = z.object({ timestamp: z.number().int().nonnegative() });
/** A limit without a time is longer than other pauses. */
const limitedAttempts = 3;

type Target = { recipient: [string] } | { groupId: string };

/** `<account id>`, `<phone number>` or `group:<group id>`. Null: not a Signal conversation. */
function targetOf(conversation: string): Target | null {
  const [, groupId] = /^group:([A-Za-z0-9+/_-]{16,100}={0,2})$/.exec(conversation) ?? [];
  if (groupId !== undefined) return { groupId };
  const isPerson = /^(?:\+[1-9]\d{4,14}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/.test(conversation);
  return isPerson ? { recipient: [conversation] } : null;
}

export async function sendPart(call: Call, part: OutboundPart, signal: AbortSignal): Promise<SendOutcome> {
  const { text, file, address } = part;
  const content = text === null ? (file === undefined ? null : attachmentOf(file)) : textOf(text);
  if (content === null) return { state: "dropped", reason: "the message has neither text nor file" };
  const parameters = { ...content, ...quoteOf(address.replyToId) };
  return deliver(call, "send", address.conversation, parameters, part.attempts, signal);
}

/** `acknowledgement`: the reaction that this channel uses. */
export function messageOperations(call: Call, acknowledgement: string): MessageOperations {
  const notOwn: SendOutcome = { state: "dropped", reason: "not a message of this account" };
  return {
    /** Clients ignore more than ten edits of a message, and edits after a day. */
    async edit({ conversation }, messageId, text, signal) {
      const editTimestamp = Number(messageId);
      if (!Number.isSafeInteger(editTimestamp)) return notOwn;
      return deliver(call, "send", conversation, { ...textOf(text), editTimestamp }, 0, signal);
    },
    async remove({ conversation }, messageId, signal) {
      const targetTimestamp = Number(messageId);
      if (!Number.isSafeInteger(targetTimestamp)) return notOwn;
      return deliver(call, "remoteDelete", conversation, { targetTimestamp }, 0, signal);
    },
    /** A removal names the reaction that it removes. */
    async react({ conversation }, messageId, reaction, signal) {
      const target = messageOf(messageId);
      if (target === null) return { state: "dropped", reason: "not a received message" };
      const { timestamp: targetTimestamp, author: targetAuthor } = target;
      const emoji = { emoji: reaction ?? acknowledgement, remove: reaction === null };
      return deliver(call, "sendReaction", conversation, { ...emoji, targetTimestamp, targetAuthor }, 0, signal);
    },
  };
}

/** Shows or hides the typing indicator. Best effort: a failure is ignored. */
export async function showTyping(call: Call, conversation: string, stop: boolean, signal: AbortSignal): Promise<void> {
  const target = targetOf(conversation);
  if (target !== null) await call("sendTyping", { ...target, ...(stop ? { stop } : {}) }, z.unknown(), signal);
}

async function deliver(
  call: Call,
  method: string,
  conversation: string,
  parameters: Record<string, unknown>,
  attempts: number,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const target = targetOf(conversation);
  if (target === null) return { state: "dropped", reason: "not a Signal conversation" };
  const answer = await call(method, { ...target, ...parameters }, SendResult, signal);
  if (answer.kind === "ok") return { state: "sent", providerMessageId: String(answer.result.timestamp) };
  const isLimited = answer.kind === "refused" && answer.status === 429;
  return outcomeOf(answer, { attempts: isLimited ? attempts + limitedAttempts : attempts, pauses: "account" });
}

function textOf({ plain, ranges }: RenderedText): { message: string; textStyle?: string[] } {
  const textStyle = ranges.flatMap(styleOf);
  return { message: plain, ...(textStyle.length === 0 ? {} : { textStyle }) };
}

const styles: Partial<Record<Range["type"], string>> = {
  bold: "BOLD",
  italic: "ITALIC",
  strikethrough: "STRIKETHROUGH",
  code: "MONOSPACE",
  pre: "MONOSPACE",
  spoiler: "SPOILER",
};

/** `start:length:STYLE` in UTF-16 units. Signal has no style for links and quotes. */
function styleOf({ type, start, end }: Range): string[] {
  const style = styles[type];
  return style === undefined ? [] : [`${start}:${end - start}:${style}`];
}

function attachmentOf({ name, mediaType, content }: NonNullable<OutboundPart["file"]>): { attachment: string[] } {
  const type = /^[\w.+-]+\/[\w.+-]+$/.test(mediaType) ? mediaType : "application/octet-stream";
  const data = Buffer.from(content).toString("base64");
  return { attachment: [`data:${type};filename=${encodeURIComponent(name.toWellFormed())};base64,${data}`] };
}

function quoteOf(
  replyToId: string | undefined,
): { quoteTimestamp: number; quoteAuthor: string } | Record<string, never> {
  const quoted = replyToId === undefined ? null : messageOf(replyToId);
  return quoted === null ? {} : { quoteTimestamp: quoted.timestamp, quoteAuthor: quoted.author };
}

/** `<timestamp>/<account id of the author>`, as `parse.ts` writes it. */
function messageOf(id: string): { timestamp: number; author: string } | null {
  const [, timestamp, author] = /^(\d{1,16})\/([0-9a-f-]{36})$/.exec(id) ?? [];
  return timestamp === undefined || author === undefined ? null : { timestamp: Number(timestamp), author };
}
