// Sends, edits, deletes and reacts. The homeserver recognises a transaction id it has seen from this access token, so a request without
// a response is repeated. Synapse remembers the ids for at least a day.
import { z } from "zod";
import { errorMessage, type ReplyAddress } from "@parley/contracts";
import { sha256Hex } from "../digest.ts";
import type { MessageOperations, OutboundFile, OutboundPart, SendOutcome } from "../channel.ts";
import { outcomeOf, outcomeOfChange, type OutcomeRules } from "../outcome.ts";
import type { RenderedText } from "../text/render.ts";
import { withTimeout } from "../transport.ts";
import { path, type MatrixApi } from "./api.ts";
import { uploadMedia } from "./media.ts";
import { objectOf, targetOf } from "./relations.ts";
import { Relations, SentEvent } from "./schema.ts";

/** Shorter than the gateway's timeouts, after which the outcome would be unknown instead of repeatable. */
const textTimeoutMs = 8_000;
const fileTimeoutMs = 18_000;
/** Pause while the homeserver does not say who the agent is. */
const unidentifiedPauseMs = 30_000;
/** The homeserver's limits are those of the account, and it recognises repetitions. */
const rules = { pauses: "account", repetitions: Number.POSITIVE_INFINITY } satisfies OutcomeRules;

type Room = NonNullable<ReturnType<typeof targetOf>>;
const notMatrix: SendOutcome = { state: "dropped", reason: "not a Matrix conversation" };

export async function sendPart(api: MatrixApi, part: OutboundPart, signal: AbortSignal): Promise<SendOutcome> {
  const room = targetOf(part.address.conversation);
  if (room === null) return notMatrix;
  const { text, file, attempts } = part;
  const timely = withTimeout(signal, text === null ? fileTimeoutMs : textTimeoutMs);
  let content: object;
  if (text !== null) content = textContent(text);
  else if (file === undefined) return { state: "dropped", reason: "the message has neither text nor file" };
  else {
    const uploaded = await uploadMedia(api, file, timely);
    if (uploaded.kind !== "ok") return outcomeOf(uploaded, { ...rules, attempts });
    content = fileContent(file, uploaded.result.content_uri);
  }
  const related = { ...content, ...relationTo(room, part.address.replyToId) };
  const answer = await put(api, room, "m.room.message", part.idempotencyKey, related, timely);
  if (answer.kind !== "ok") return outcomeOf(answer, { ...rules, attempts });
  return { state: "sent", providerMessageId: answer.result.event_id };
}

/** `identify`: the user id of the agent. */
export function messageOperations(
  api: MatrixApi,
  identify: (signal: AbortSignal) => Promise<string>,
): MessageOperations {
  /** Removes the agent's reactions to a message, on any replica. */
  const unreact = async (room: Room, messageId: string, signal: AbortSignal): Promise<SendOutcome> => {
    const userId = await identify(signal);
    const found = await api({
      method: "GET",
      path: path`/client/v1/rooms/${room.roomId}/relations/${messageId}/m.annotation/m.reaction`,
      result: Relations,
      signal,
    });
    if (found.kind !== "ok") return outcomeOf(found, rules);
    for (const event of found.result.chunk) {
      if (event.sender !== userId || objectOf(event.content["m.relates_to"])["event_id"] !== messageId) continue;
      const answer = await redact(api, room, event.event_id, signal);
      if (answer.kind !== "ok") return outcomeOf(answer, rules);
    }
    return { state: "sent", providerMessageId: null };
  };
  return {
    async edit({ conversation }, messageId, text, signal) {
      const room = targetOf(conversation);
      if (room === null) return notMatrix;
      const content = textContent(text);
      const replaces = { "m.new_content": content, "m.relates_to": { rel_type: "m.replace", event_id: messageId } };
      const edit = { ...content, body: `* ${text.plain}`, ...replaces };
      const key = `edit ${messageId} ${text.text}`;
      const answer = await put(api, room, "m.room.message", key, edit, withTimeout(signal, textTimeoutMs));
      return outcomeOfChange(answer, messageId, undefined, rules);
    },
    async remove({ conversation }, messageId, signal) {
      const room = targetOf(conversation);
      if (room === null) return notMatrix;
      const answer = await redact(api, room, messageId, withTimeout(signal, textTimeoutMs));
      return outcomeOfChange(answer, null, ({ status }) => status === 404, rules);
    },
    async react({ conversation }, messageId, reaction, signal) {
      const room = targetOf(conversation);
      if (room === null) return notMatrix;
      const timely = withTimeout(signal, textTimeoutMs);
      if (reaction === null) {
        return unreact(room, messageId, timely).catch((error: unknown) => {
          return { state: "retry", afterMs: unidentifiedPauseMs, reason: errorMessage(error) };
        });
      }
      const content = { "m.relates_to": { rel_type: "m.annotation", event_id: messageId, key: reaction } };
      const answer = await put(api, room, "m.reaction", `reaction ${messageId} ${reaction}`, content, timely);
      // The same reaction exists already.
      return outcomeOfChange(answer, null, ({ code }) => code === "M_DUPLICATE_ANNOTATION", rules);
    },
  };
}

/** Shows or hides the typing indicator. Best effort. */
export async function setTyping(
  api: MatrixApi,
  userId: string,
  { conversation }: ReplyAddress,
  shownForMs: number,
): Promise<void> {
  const room = targetOf(conversation);
  if (room === null) return;
  await api({
    method: "PUT",
    path: path`/client/v3/rooms/${room.roomId}/typing/${userId}`,
    body: shownForMs === 0 ? { typing: false } : { typing: true, timeout: shownForMs },
    result: z.unknown(),
    signal: AbortSignal.timeout(textTimeoutMs),
  });
}

function put(api: MatrixApi, room: Room, type: string, key: string, body: object, signal: AbortSignal) {
  const of = path`/client/v3/rooms/${room.roomId}/send/${type}/${sha256Hex(key)}`;
  return api({ method: "PUT", path: of, body, result: SentEvent, signal });
}

function redact(api: MatrixApi, room: Room, eventId: string, signal: AbortSignal) {
  const of = path`/client/v3/rooms/${room.roomId}/redact/${eventId}/${sha256Hex(`redact ${eventId}`)}`;
  return api({ method: "PUT", path: of, body: {}, result: SentEvent, signal });
}

/** `m.mentions` is empty: a name in an answer notifies nobody. */
function textContent({ text, plain, ranges }: RenderedText) {
  const isPlain = ranges.length === 0 && !/<(?!\/?p>)/.test(text);
  const html = isPlain ? {} : { format: "org.matrix.custom.html", formatted_body: text };
  return { msgtype: "m.text", body: plain, ...html, "m.mentions": {} };
}

function fileContent({ name, mediaType, content }: OutboundFile, url: string) {
  const [kind = ""] = mediaType.split("/");
  const msgtype = ["image", "audio", "video"].includes(kind) ? `m.${kind}` : "m.file";
  const info = { mimetype: mediaType, size: content.length };
  return { msgtype, body: name, filename: name, url, info, "m.mentions": {} };
}

function relationTo({ thread }: Room, replyToId: string | undefined) {
  if (thread !== undefined) {
    // For clients without threads it is a reply.
    const reply = { "m.in_reply_to": { event_id: replyToId ?? thread } };
    return { "m.relates_to": { rel_type: "m.thread", event_id: thread, is_falling_back: true, ...reply } };
  }
  return replyToId === undefined ? {} : { "m.relates_to": { "m.in_reply_to": { event_id: replyToId } } };
}
