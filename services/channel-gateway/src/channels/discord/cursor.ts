// The cursor of the connection: which session to resume after which event, and what to read where the session is gone. Pure.
import { z } from "zod";
import { parseJson } from "@parley/kit";
import { Snowflake } from "./schema.ts";

const Cursor = z.object({
  /** Null: the next connection begins a new session. */
  session: z.object({ id: z.string(), url: z.url({ protocol: /^wss?$/ }), seq: z.number().int() }).nullable(),
  /** The newest handled message. */
  message: Snowflake.nullable(),
  /** `message` is a time by the clock of this machine, before the first message. */
  estimated: z.boolean().default(false),
  /** Conversations outside of `groups` with accepted messages, the newest last. */
  conversations: z.array(Snowflake).max(100),
});
export type Cursor = z.infer<typeof Cursor>;

/** The clock of this machine may be so much ahead of that of Discord. */
const clockToleranceMs = 60_000;

/** More conversations than this are not read after a lost session. */
const maxConversations = 30;

const noCursor: Cursor = { session: null, message: null, estimated: false, conversations: [] };

/** A cursor that cannot be read counts as none. */
export function parseCursor(text: string | null): Cursor {
  return Cursor.safeParse(parseJson(text ?? "")).data ?? noCursor;
}

export function formatCursor(cursor: Cursor): string {
  return JSON.stringify(cursor);
}

/** The cursor after a message. */
export function withMessage(cursor: Cursor, id: string, conversation: string | null): Cursor {
  const { message: known, estimated } = cursor;
  const message = known !== null && !estimated && BigInt(known) > BigInt(id) ? known : id;
  const next = { ...cursor, message, estimated: false };
  if (conversation === null) return next;
  const others = cursor.conversations.filter((one) => one !== conversation);
  return { ...next, conversations: [...others, conversation].slice(-maxConversations) };
}

/** The cursor of a session without an earlier message, whose connection was started at this time. */
export function withStart(cursor: Cursor, startedAtMs: number): Cursor {
  if (cursor.message !== null) return cursor;
  return { ...cursor, message: snowflakeAt(startedAtMs - clockToleranceMs), estimated: true };
}

/** Discord's epoch: the first millisecond of 2015. */
const epochMs = 1_420_070_400_000;

/** The smallest id of a message sent at this time. */
export function snowflakeAt(ms: number): string {
  return String(BigInt(Math.max(0, ms - epochMs)) << 22n);
}
