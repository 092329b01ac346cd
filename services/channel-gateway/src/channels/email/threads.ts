// Which conversation a mail belongs to, and what an answer needs to stay in its thread. A conversation is a person and the first Message-ID
// of the thread, so a third person who knows the id cannot enter it. Pure.
import { parseJson } from "@parley/kit";
import { z } from "zod";
import { sha256Hex } from "../digest.ts";

/** What an answer needs, in the context of the reply address. */
const ThreadSchema = z.object({ subject: z.string(), references: z.array(z.string()).min(1) });
export type Thread = z.infer<typeof ThreadSchema>;

const maxConversation = 512;
/** Below the 2,048 characters of a context. */
const maxReferences = 1_400;
const maxSubject = 200;
const ownId = /^<parley\.[0-9a-f]{32}@/;

/** The same for every send of one message, so that a repeated send is recognised by its Message-ID. */
export function messageIdOf(account: string, idempotencyKey: string, ownAddress: string): string {
  return `<parley.${sha256Hex(`${account} ${idempotencyKey}`).slice(0, 32)}@${domainOf(ownAddress)}>`;
}

export function domainOf(address: string): string {
  return address.slice(address.lastIndexOf("@") + 1);
}

export function isOwnMessageId(id: string, ownAddress: string): boolean {
  return ownId.test(id) && id.toLowerCase().endsWith(`@${domainOf(ownAddress)}>`);
}

/** The Message-IDs of a header, in order. They become ids in the store, so they contain no control characters. */
export function messageIds(header: string): string[] {
  return header.match(/<[^<>\s\p{C}]{1,400}>/gu) ?? [];
}

/** The conversation with a person in the thread that begins with `root`. A thread that we began has no root: it is the person's own. */
export function conversationOf(person: string, root: string, ownAddress: string): string {
  if (isOwnMessageId(root, ownAddress)) return person;
  const conversation = `${person}/${root}`;
  return conversation.length <= maxConversation ? conversation : `${person}/${sha256Hex(root)}`;
}

/** The person of a conversation and the thread's first Message-ID, if it has one; null: not a conversation by mail. */
export function parseConversation(conversation: string): { person: string; root: string | null } | null {
  const [, person = "", root] = /^([^\s<>,;"]{1,64}@[^\s<>,;"/@]{1,255})(?:\/(.+))?$/.exec(conversation) ?? [];
  if (person === "") return null;
  return { person, root: root !== undefined && messageIds(root)[0] === root ? root : null };
}

/** The thread of a mail: its references and itself. Of a long thread the first and the newest references remain (RFC 5322, 3.6.4). */
export function threadOf(subject: string, earlier: readonly string[], messageId: string): Thread {
  const all = [...new Set([...earlier, messageId])];
  const [root = messageId, ...rest] = all;
  const newest: string[] = [];
  let length = root.length;
  for (const id of rest.toReversed()) {
    length += id.length + 3;
    if (length > maxReferences) break;
    newest.unshift(id);
  }
  return { subject: subject.slice(0, maxSubject).toWellFormed(), references: [root, ...newest] };
}

/** As the context of a reply address; undefined when it does not fit. */
export function contextOf(thread: Thread): string | undefined {
  const context = JSON.stringify(thread);
  return context.length <= 2_048 ? context : undefined;
}

export function parseContext(context: string | undefined): Thread | null {
  if (context === undefined) return null;
  const parsed = ThreadSchema.safeParse(parseJson(context));
  return parsed.success ? parsed.data : null;
}

/** The subject of an answer. */
export function answerSubject(subject: string): string {
  return /^(?:re|aw|sv|antw)\s?:/i.test(subject) ? subject : `Re: ${subject}`;
}
