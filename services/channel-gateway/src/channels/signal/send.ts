// Sends one message through the daemon, at most once. Signal does not deduplicate, so a message is sent again only if it certainly did not
// arrive.
import { z } from "zod";
import type { OutboundPart, SendOutcome } from "../channel.ts";
import type { RenderedText } from "../text/render.ts";
import type { Range } from "../text/rich-text.ts";
import { errorCode, SendResult, type Answer, type Call, type RecipientResult } from "./rpc.ts";

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
  return deliver(
    call,
    "send",
    address.conversation,
    { ...content, ...quoteOf(address.replyToId) },
    part.attempts,
    signal,
  );
}

/** Replaces the text of a message of this account. Clients ignore more than ten edits of a message, and edits after a day. */
export async function editMessage(
  call: Call,
  conversation: string,
  messageId: string,
  text: RenderedText,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const editTimestamp = Number(messageId);
  if (!Number.isSafeInteger(editTimestamp)) return { state: "dropped", reason: "not a message of this account" };
  return deliver(call, "send", conversation, { ...textOf(text), editTimestamp }, 0, signal);
}

/** Deletes a message of this account for everybody. */
export async function removeMessage(
  call: Call,
  conversation: string,
  messageId: string,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const targetTimestamp = Number(messageId);
  if (!Number.isSafeInteger(targetTimestamp)) return { state: "dropped", reason: "not a message of this account" };
  return deliver(call, "remoteDelete", conversation, { targetTimestamp }, 0, signal);
}

/** Sets the reaction to a received message. A removal names the reaction that it removes. */
export async function reactTo(
  call: Call,
  conversation: string,
  messageId: string,
  reaction: { emoji: string; remove: boolean },
  signal: AbortSignal,
): Promise<SendOutcome> {
  const target = messageOf(messageId);
  if (target === null) return { state: "dropped", reason: "not a received message" };
  const { timestamp: targetTimestamp, author: targetAuthor } = target;
  return deliver(call, "sendReaction", conversation, { ...reaction, targetTimestamp, targetAuthor }, 0, signal);
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
  if (answer.kind !== "ok") return outcomeOf(answer, attempts);
  // A message that reached one member of a group is sent.
  const { timestamp, results } = answer.result;
  const delivered = results.length === 0 || results.some(({ type }) => type === "SUCCESS");
  return delivered
    ? { state: "sent", providerMessageId: String(timestamp) }
    : failureOf(results, "not delivered", attempts);
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

const backoffOf = (attempts: number): number => Math.min(1_000 * 2 ** attempts, 60_000);
/** Pause while the daemon does not know the account: the message can be sent once that is corrected. */
const misconfiguredMs = 60_000;

/** Converts a failed call to the delivery outcome of its message. */
function outcomeOf(
  answer: Exclude<Answer<unknown>, { kind: "ok" }>,
  attempts: number,
): Exclude<SendOutcome, { state: "sent" }> {
  if (answer.kind === "unreached") return { state: "retry", afterMs: backoffOf(attempts), reason: answer.reason };
  if (answer.kind === "lost") return { state: "unknown", reason: answer.reason };
  const { code, message: reason, results } = answer;
  if (results.length > 0) return failureOf(results, reason, attempts);
  if (code === errorCode.rateLimit)
    return { state: "retry", afterMs: rateLimitMs(results, attempts), reason, scope: "account" };
  if (code === errorCode.parameters) return { state: "retry", afterMs: misconfiguredMs, reason };
  // The daemon had no connection to Signal's servers.
  if (/\((?:UnknownHost|Connect|NoRouteToHost)Exception\)/.test(reason))
    return { state: "retry", afterMs: backoffOf(attempts), reason };
  if (code === errorCode.user || code === errorCode.untrustedKey || code === errorCode.method)
    return { state: "dropped", reason };
  return { state: "unknown", reason };
}

/** The outcome of a send that reached nobody, by the results of its recipients. */
function failureOf(
  results: readonly RecipientResult[],
  reason: string,
  attempts: number,
): Exclude<SendOutcome, { state: "sent" }> {
  const types = new Set(results.map(({ type }) => type));
  // The request to Signal's servers may have arrived.
  if (types.has("NETWORK_FAILURE")) return { state: "unknown", reason: `${reason}: network failure` };
  if (types.has("RATE_LIMIT_FAILURE")) {
    const afterMs = rateLimitMs(results, attempts);
    return { state: "retry", afterMs, reason: `${reason}: limited by Signal`, scope: "account" };
  }
  if (types.has("IDENTITY_FAILURE")) {
    return { state: "dropped", reason: `${reason}: the safety number changed; check it and run \`signal-cli trust\`` };
  }
  if (types.has("UNREGISTERED_FAILURE")) return { state: "dropped", reason: `${reason}: not registered with Signal` };
  return { state: "dropped", reason };
}

function rateLimitMs(results: readonly RecipientResult[], attempts: number): number {
  const asked = Math.max(0, ...results.map(({ retryAfterSeconds }) => retryAfterSeconds ?? 0));
  return asked > 0 ? asked * 1_000 : backoffOf(attempts + 3);
}
