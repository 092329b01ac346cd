// How an event refers to others: thread, reply, edit, reaction. Pure.
import type { MatrixEvent } from "./schema.ts";

export interface Relation {
  /** The first message of the thread that the event belongs to. */
  thread?: string;
  /** The message that the event replies to. */
  replyTo?: string;
  /** The message whose text the event replaces. */
  replaces?: string;
  /** The message that the event reacts to. */
  annotates?: string;
}

export function relationOf({ content }: Pick<MatrixEvent, "content">): Relation {
  const relates = objectOf(content["m.relates_to"]);
  const target = idOf(relates["event_id"]);
  const reply = idOf(objectOf(relates["m.in_reply_to"])["event_id"]);
  const replyTo = reply === undefined ? {} : { replyTo: reply };
  switch (relates["rel_type"]) {
    case "m.thread":
      // Clients name the last message of the thread as replied to, for clients without threads.
      return {
        ...(target === undefined ? {} : { thread: target }),
        ...(relates["is_falling_back"] === true ? {} : replyTo),
      };
    case "m.replace":
      return target === undefined ? {} : { replaces: target };
    case "m.annotation":
      return target === undefined ? {} : { annotates: target };
    default:
      return replyTo;
  }
}

/** The conversation of a message: the room, or a thread in it. */
export function conversationOf(roomId: string, thread: string | undefined): string {
  return thread === undefined ? roomId : `${roomId}/${thread}`;
}

/** The room and thread of a conversation; null when it is not one of Matrix. */
export function targetOf(conversation: string): { roomId: string; thread?: string } | null {
  const [, roomId, thread] = /^(![^\s/]{1,254})(?:\/(\$[^\s]{1,254}))?$/.exec(conversation) ?? [];
  if (roomId === undefined) return null;
  return { roomId, ...(thread === undefined ? {} : { thread }) };
}

export function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function idOf(value: unknown): string | undefined {
  return typeof value === "string" && /^\$[^\s]{1,254}$/.test(value) ? value : undefined;
}
