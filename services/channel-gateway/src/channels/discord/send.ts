// Sends, edits and deletes messages. A message has a nonce that is derived from its idempotency key: Discord answers a
// repetition within a few minutes with the first message, so that a send with an unknown outcome may be repeated for so long.
import { z } from "zod";
import type { MessageOperations, OutboundFile, OutboundPart, SendOutcome } from "../channel.ts";
import { sha256 } from "../digest.ts";
import type { Answer } from "../json-api.ts";
import { messageOperationsOf } from "../message-operations.ts";
import { outcomeOf, type OutcomeRules } from "../outcome.ts";
import { withTimeout } from "../transport.ts";
import type { Call } from "./api.ts";
import { discordMarkdown } from "./markdown.ts";
import { Snowflake } from "./schema.ts";

const Sent = z.object({ id: Snowflake });
const maxContent = 2_000;
const maxNonceChars = 25;
/** https://discord.com/developers/docs/topics/opcodes-and-status-codes#json */
const missingPermissions = "50013";
const suppressEmbeds = 1 << 2;
const buttonsInRow = 5;
/** Attempts with an unknown outcome end before Discord may have forgotten the nonce: these take less than two minutes. */
const maxRepetitions = 5;
/** Shorter than the timeouts of the host, so that the outcome is this file's. */
const textWithinMs = 8_000;
const filesWithinMs = 18_000;

export async function sendPart(call: Call, part: OutboundPart, signal: AbortSignal): Promise<SendOutcome> {
  const { conversation } = part.address;
  if (!Snowflake.safeParse(conversation).success) return { state: "dropped", reason: "not a Discord channel" };
  const files = part.files ?? (part.file === undefined ? [] : [part.file]);
  const content = part.text === null ? "" : discordMarkdown(part.text.text);
  const limit = withTimeout(signal, files.length === 0 ? textWithinMs : filesWithinMs);
  const path = `/channels/${conversation}/messages`;
  const send = (text: string, attached: readonly OutboundFile[]) =>
    call({ method: "POST", path, body: bodyOf(part, text, attached), files: attached }, Sent, limit);
  let answer = await send(content, files);
  const problem = fileProblemOf(answer);
  if (problem !== null && files.length > 0 && content !== "") {
    // The text arrives without its files: how large they may be, and whether the bot may attach any, depends on the server.
    const note = `\n[not sent, ${problem}: ${files.map(({ name }) => name).join(", ")}]`;
    answer = await send(content.length + note.length > maxContent ? content : content + note, []);
  }
  if (answer.kind === "ok") return { state: "sent", providerMessageId: answer.result.id };
  const isCorrectable = answer.kind === "refused" && answer.code === missingPermissions;
  const outcome = outcomeOf(answer, { attempts: part.attempts, isCorrectable, ...rulesOf(answer) });
  if (isCorrectable) return { ...outcome, reason: `the bot lacks a permission in the channel: ${outcome.reason}` };
  const isTooLarge = answer.kind === "refused" && answer.status === 413;
  return isTooLarge ? { ...outcome, reason: `larger than Discord accepts: ${outcome.reason}` } : outcome;
}

/** Why Discord may have refused the files of a message; null: not because of them. */
function fileProblemOf(answer: Answer<unknown>): string | null {
  if (answer.kind !== "refused") return null;
  if (answer.status === 413) return "larger than Discord accepts";
  return answer.code === missingPermissions ? "the bot may not attach files here" : null;
}

function rulesOf(answer: Answer<unknown>): OutcomeRules {
  const isGlobal = answer.kind === "refused" && answer.code === "global";
  return { pauses: isGlobal ? "account" : "conversation", repetitions: maxRepetitions };
}

function bodyOf(part: OutboundPart, content: string, files: readonly OutboundFile[]) {
  const { replyToId } = part.address;
  return {
    ...contentOf(content),
    nonce: nonceOf(part),
    enforce_nonce: true,
    ...(Snowflake.safeParse(replyToId).success
      ? { message_reference: { message_id: replyToId, fail_if_not_exists: false } }
      : {}),
    ...(part.actions === undefined ? {} : { components: rowsOf(part.actions) }),
    ...(files.length === 0 ? {} : { attachments: files.map(({ name: filename }, id) => ({ id, filename })) }),
  };
}

/** `acknowledgement`: the reaction that this channel uses. */
export function messageOperations(call: Call, acknowledgement: string): MessageOperations {
  return messageOperationsOf<string>("Discord", {
    messageOf: (conversation, messageId) => {
      const areIds = Snowflake.safeParse(conversation).success && Snowflake.safeParse(messageId).success;
      return areIds ? `/channels/${conversation}/messages/${messageId}` : null;
    },
    edit: (path, text, signal) => {
      const body = { ...contentOf(discordMarkdown(text.text)), components: [] };
      return call({ method: "PATCH", path, body }, z.unknown(), signal);
    },
    remove: (path, signal) => call({ method: "DELETE", path }, z.unknown(), signal),
    react: (message, reaction, signal) => {
      const path = `${message}/reactions/${encodeURIComponent(reaction ?? acknowledgement)}/@me`;
      return call({ method: reaction === null ? "DELETE" : "PUT", path }, z.unknown(), signal);
    },
    isDone: ({ status }, operation) => status === 404 && operation !== "edit",
    rulesOf,
  });
}

/** People can be mentioned; roles and everyone cannot, because the text may repeat untrusted content. */
function contentOf(content: string) {
  return { content, flags: suppressEmbeds, allowed_mentions: { parse: ["users"], replied_user: true } };
}

function rowsOf(actions: NonNullable<OutboundPart["actions"]>) {
  const buttons = actions.map(({ label, input }) => ({ type: 2, style: 2, label, custom_id: input }));
  const rows = Math.ceil(buttons.length / buttonsInRow);
  return Array.from({ length: rows }, (_, row) => ({
    type: 1,
    components: buttons.slice(row * buttonsInRow, (row + 1) * buttonsInRow),
  }));
}

function nonceOf({ idempotencyKey, address }: OutboundPart): string {
  const key = JSON.stringify([address.account, address.conversation, idempotencyKey]);
  return sha256(key).toString("base64url").slice(0, maxNonceChars);
}
