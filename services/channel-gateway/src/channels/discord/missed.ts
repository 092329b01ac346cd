// The messages that a lost session has missed, read from the channels.
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import type { ChannelHost, LeaseRef } from "../channel.ts";
import type { Answer } from "../json-api.ts";
import { withTimeout } from "../transport.ts";
import { callWithinMs, required } from "./api.ts";
import type { Discord } from "./connect.ts";
import { snowflakeAt, type Cursor } from "./cursor.ts";
import { Channel, Message } from "./schema.ts";

/** Messages that are older are not fetched. */
const oldestMissedMs = 24 * 3_600_000;
/** Pause after a limit that names no time. */
const limitedPauseMs = 1_000;
const pageSize = 100;
/** Of one channel; newer messages than these are not fetched. */
const maxPages = 10;

const MessageList = z.array(z.looseObject({ id: Message.shape.id }));
type Listed = z.infer<typeof MessageList>[number];

/** The part of a channel that is not read yet. */
interface Unread {
  /** Fields that the gateway adds to a message. */
  place: object;
  /** The last message of the previous page. */
  after: string;
  page: Listed[];
  pagesLeft: number;
}

/**
 * The messages after the cursor in its conversations and the groups, oldest first over all of them: the position that is stored with a
 * message must not skip messages of another channel. A channel that the bot may not read is left out with a log line. Rejects when Discord
 * cannot be reached.
 */
export async function* missedMessages(
  { call, groups, shards }: Pick<Discord, "call" | "groups" | "shards">,
  host: ChannelHost,
  { message, conversations }: Cursor,
  { signal, slot = 0 }: LeaseRef,
): AsyncGenerator<unknown, void> {
  const oldest = snowflakeAt(Date.now() - oldestMissedMs);
  const since = message === null || BigInt(message) < BigInt(oldest) ? oldest : message;
  /** Null, with a log line, when the bot may not read this channel. */
  const read = async <Result>(id: string, more: string, result: z.ZodType<Result>): Promise<Result | null> => {
    const request = { method: "GET", path: `/channels/${id}${more}` } as const;
    const answer = await unlimited(() => call(request, result, withTimeout(signal, callWithinMs)), signal);
    if (answer.kind !== "refused" || (answer.status !== 403 && answer.status !== 404)) return required(answer);
    host.log.warn({ conversation: id, reason: answer.reason }, "missed messages not read");
    return null;
  };
  const channels = new Map<string, Unread>();
  for (const id of new Set([...groups, ...conversations])) {
    const channel = await read(id, "", Channel);
    if (channel === null) continue;
    const { type, guild_id: guildId, last_message_id: last } = channel;
    if (shardOf(guildId, shards) !== slot) continue;
    if (last === null || last === undefined || BigInt(last) <= BigInt(since)) continue;
    const place = { channel_type: type, ...(typeof guildId === "string" ? { guild_id: guildId } : {}) };
    channels.set(id, { place, after: since, page: [], pagesLeft: maxPages });
  }
  for (;;) {
    for (const [id, unread] of channels) {
      if (unread.page.length > 0) continue;
      unread.page = unread.pagesLeft === 0 ? [] : await nextPage(read, id, unread);
      if (unread.page.length === 0) channels.delete(id);
    }
    const [next] = [...channels.values()].sort((left, right) => compareIds(left.page[0], right.page[0]));
    const oldestUnread = next?.page.shift();
    if (next === undefined || oldestUnread === undefined) return;
    yield { ...oldestUnread, ...next.place };
  }
}

type Read = <Result>(id: string, more: string, result: z.ZodType<Result>) => Promise<Result | null>;

/** A channel can be visible while its messages are not, such as a voice channel that the bot may not connect to. */
async function nextPage(read: Read, id: string, unread: Unread): Promise<Listed[]> {
  const more = `/messages?after=${unread.after}&limit=${pageSize}`;
  const page = ((await read(id, more, MessageList)) ?? []).toSorted(compareIds);
  unread.after = page.at(-1)?.id ?? unread.after;
  unread.pagesLeft = page.length < pageSize ? 0 : unread.pagesLeft - 1;
  return page;
}

function compareIds(left: Listed | undefined, right: Listed | undefined): number {
  return BigInt(left?.id ?? 0) < BigInt(right?.id ?? 0) ? -1 : 1;
}

/** https://discord.com/developers/docs/events/gateway#sharding */
function shardOf(guildId: string | null | undefined, shards: number): number {
  return typeof guildId === "string" ? Number((BigInt(guildId) >> 22n) % BigInt(shards)) : 0;
}

/** Repeats a read while Discord limits it. */
async function unlimited<Result>(read: () => Promise<Answer<Result>>, signal: AbortSignal): Promise<Answer<Result>> {
  for (;;) {
    const answer = await read();
    if (answer.kind !== "refused" || answer.status !== 429) return answer;
    await delay(answer.retryAfterMs ?? limitedPauseMs, undefined, { signal });
  }
}
