// Sends, edits and deletes messages, at most once. Slack does not deduplicate, so a message is sent again only if it certainly did not
// arrive.
import { z } from "zod";
import type { MessageOperations, OutboundPart, SendOutcome } from "../channel.ts";
import type { Answer } from "../json-api.ts";
import { messageOperationsOf } from "../message-operations.ts";
import { outcomeOf } from "../outcome.ts";
import type { RenderedText } from "../text/render.ts";
import { buttonBlocks } from "./actions.ts";
import type { Call } from "./api.ts";
import type { UploadFile } from "./files.ts";
import { escaped, withoutNotifications } from "./text.ts";

const Sent = z.object({ ts: z.string() });
/** The length of the text for notifications. */
const maxFallback = 800;

export interface Target {
  channel: string;
  threadTs: string | undefined;
}

/** `<channel>[/<timestamp of the thread>]`; null for any other text. */
export function targetOf(conversation: string): Target | null {
  const [, channel, threadTs] = /^([CDGU][A-Z0-9]{1,30})(?:\/(\d{1,12}\.\d{1,9}))?$/.exec(conversation) ?? [];
  return channel === undefined ? null : { channel, threadTs };
}

const notAConversation: SendOutcome = { state: "dropped", reason: "not a Slack conversation" };

/** Sends a text or a file. */
export async function sendPart(
  call: Call,
  upload: UploadFile,
  { address, text, file, actions, attempts }: OutboundPart,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const target = targetOf(address.conversation);
  if (target === null) return notAConversation;
  const rules = { attempts, pauses: "conversation" } as const;
  if (text === null) {
    if (file === undefined) return { state: "dropped", reason: "the message has neither text nor file" };
    const answer = await upload(target, file, signal);
    return answer.kind === "ok" ? { state: "sent", providerMessageId: null } : outcomeOf(answer, rules);
  }
  const place = { channel: target.channel, thread_ts: target.threadTs, unfurl_links: false, unfurl_media: false };
  const answer = await withText(call, "chat.postMessage", place, text, buttonBlocks(actions), signal);
  return answer.kind === "ok" ? { state: "sent", providerMessageId: answer.result.ts } : outcomeOf(answer, rules);
}

/** Errors that say that nothing is left to do. */
const alreadyDone: Partial<Record<keyof MessageOperations, readonly string[]>> = {
  remove: ["message_not_found"],
  react: ["already_reacted", "no_reaction"],
};

/** `acknowledgement`: the reaction that this channel uses. */
export function messageOperations(call: Call, acknowledgement: string): MessageOperations {
  return messageOperationsOf("Slack", {
    messageOf: (conversation, ts) => {
      const channel = targetOf(conversation)?.channel;
      return channel === undefined ? null : { channel, ts };
    },
    edit: (message, text, signal) => withText(call, "chat.update", message, text, [], signal),
    remove: (message, signal) => call("chat.delete", message, z.unknown(), signal),
    react: ({ channel, ts: timestamp }, reaction, signal) => {
      const method = reaction === null ? "reactions.remove" : "reactions.add";
      return call(method, { channel, timestamp, name: reaction ?? acknowledgement }, z.unknown(), signal);
    },
    isDone: ({ code }, operation) => alreadyDone[operation]?.includes(code) === true,
  });
}

/** Slack renders the Markdown block; `text` is what notifications show. A text that Slack refuses as a block is sent as it is. */
async function withText(
  call: Call,
  method: string,
  place: Record<string, unknown>,
  { text, plain }: RenderedText,
  buttons: readonly Record<string, unknown>[],
  signal: AbortSignal,
): Promise<Answer<z.infer<typeof Sent>>> {
  const blocks = [{ type: "markdown", text: withoutNotifications(text) }, ...buttons];
  const fallback = escaped(plain.slice(0, maxFallback).toWellFormed());
  const answer = await call(method, { ...place, text: fallback, blocks }, Sent, signal);
  if (answer.kind !== "refused" || !answer.code.startsWith("invalid_blocks") || buttons.length > 0) return answer;
  return call(method, { ...place, text: escaped(plain), blocks: [] }, Sent, signal);
}
