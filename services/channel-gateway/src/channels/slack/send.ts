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

const PostedMessage = z.object({ ts: z.string() });
/** Maximum length of the text that notifications show, in UTF-16 units. */
const maxNotificationLength = 800;

/** Where a message is sent. */
export interface Target {
  /** The id of the Slack channel or direct conversation. */
  channel: string;
  /** The timestamp of the message that began the thread; undefined outside of threads. */
  threadTs: string | undefined;
}

/** Parses the id of a conversation, `<channel>[/<timestamp of the thread>]`; null for any other text. */
export function targetOf(conversation: string): Target | null {
  const [, channel, threadTs] = /^([CDGU][A-Z0-9]{1,30})(?:\/(\d{1,12}\.\d{1,9}))?$/.exec(conversation) ?? [];
  return channel === undefined ? null : { channel, threadTs };
}

const invalidConversation: SendOutcome = { state: "dropped", reason: "not a Slack conversation" };

/** Sends a text or a file. */
export async function sendPart(
  call: Call,
  upload: UploadFile,
  { address, text, file, actions, attempts }: OutboundPart,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const target = targetOf(address.conversation);
  if (target === null) return invalidConversation;
  const retryRules = { attempts, pauses: "conversation" } as const;
  if (text === null) {
    if (file === undefined) return { state: "dropped", reason: "the message has neither text nor file" };
    const answer = await upload(target, file, signal);
    return answer.kind === "ok" ? { state: "sent", providerMessageId: null } : outcomeOf(answer, retryRules);
  }
  const parameters = { channel: target.channel, thread_ts: target.threadTs, unfurl_links: false, unfurl_media: false };
  const answer = await callWithText(call, "chat.postMessage", parameters, text, buttonBlocks(actions), signal);
  return answer.kind === "ok" ? { state: "sent", providerMessageId: answer.result.ts } : outcomeOf(answer, retryRules);
}

/** Error codes of operations that have no effect because Slack is already in the requested state. */
const alreadyDone: Partial<Record<keyof MessageOperations, readonly string[]>> = {
  remove: ["message_not_found"],
  react: ["already_reacted", "no_reaction"],
};

/** Edits, deletes and reacts to messages. `acknowledgement`: the name of the reaction that `react` removes for null. */
export function messageOperations(call: Call, acknowledgement: string): MessageOperations {
  return messageOperationsOf("Slack", {
    messageOf: (conversation, ts) => {
      const channel = targetOf(conversation)?.channel;
      return channel === undefined ? null : { channel, ts };
    },
    edit: (message, text, signal) => callWithText(call, "chat.update", message, text, [], signal),
    remove: (message, signal) => call("chat.delete", message, z.unknown(), signal),
    react: ({ channel, ts: timestamp }, reaction, signal) => {
      const method = reaction === null ? "reactions.remove" : "reactions.add";
      return call(method, { channel, timestamp, name: reaction ?? acknowledgement }, z.unknown(), signal);
    },
    isDone: ({ code }, operation) => alreadyDone[operation]?.includes(code) === true,
  });
}

/**
 * Calls `method` with a Markdown block, which Slack renders, and with `text`, which notifications show. If Slack rejects the block, the
 * call is repeated with plain text; with buttons it is not, because they would be lost.
 */
async function callWithText(
  call: Call,
  method: string,
  parameters: Record<string, unknown>,
  { text, plain }: RenderedText,
  buttons: readonly Record<string, unknown>[],
  signal: AbortSignal,
): Promise<Answer<z.infer<typeof PostedMessage>>> {
  const blocks = [{ type: "markdown", text: withoutNotifications(text) }, ...buttons];
  const notificationText = escaped(plain.slice(0, maxNotificationLength).toWellFormed());
  const answer = await call(method, { ...parameters, text: notificationText, blocks }, PostedMessage, signal);
  if (answer.kind !== "refused" || !answer.code.startsWith("invalid_blocks") || buttons.length > 0) return answer;
  return call(method, { ...parameters, text: escaped(plain), blocks: [] }, PostedMessage, signal);
}
