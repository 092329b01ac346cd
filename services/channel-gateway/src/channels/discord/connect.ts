// Holds the connection while the lease is held: resumes the session of the cursor, or begins a new one and reads what was missed.
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { AccountRejectedError, type ChannelHost, type LeaseRef } from "../channel.ts";
import type { Answer } from "../json-api.ts";
import { PlatformUnavailableError, resultOf } from "../outcome.ts";
import { within } from "../transport.ts";
import type { Call } from "./api.ts";
import { parseCursor, snowflakeAt, type Cursor } from "./cursor.ts";
import { EventQueue } from "./event-queue.ts";
import { Channel, GatewayBot, Message, type User } from "./schema.ts";
import { runSocket, type ConnectionEnd } from "./socket.ts";
import type { Threads } from "./threads.ts";

export interface Discord {
  account: string;
  token: string;
  groups: readonly string[];
  intents: number;
  /** The number of connections; each has the servers of one shard, the first one also direct conversations. */
  shards: number;
  call: Call;
  threads: Threads;
  /** The bot itself. Rejects with AccountRejectedError when the token is refused. */
  identify: (signal: AbortSignal) => Promise<User>;
}

/** Discord requires 1 to 5 s before a new session after a lost one. */
const newSessionPauseMs = { least: 1_000, most: 5_000 };
const callWithinMs = 10_000;
/** Pause after a limit that names no time. */
const limitedPauseMs = 1_000;
/** Messages that are older were missed for good. */
const oldestMissedMs = 24 * 3_600_000;
const pageSize = 100;
const maxPages = 10;

/**
 * Returns when the connection broke or the lease's signal aborts. Rejects when an event could not be stored or Discord could not be
 * reached, with AccountRejectedError when Discord refuses the bot.
 */
export async function holdConnection(discord: Discord, host: ChannelHost, lease: LeaseRef): Promise<void> {
  let cursor = parseCursor(lease.cursor);
  while (!lease.signal.aborted) {
    const end = await connectOnce(discord, host, lease, cursor);
    if (lease.signal.aborted) return;
    host.log.warn({ reason: end.reason }, "connection lost");
    if (end.kind === "rejected") throw new AccountRejectedError(end.reason);
    host.report({ state: "failing", reason: end.reason });
    if (end.kind === "lost") return;
    cursor = { ...parseCursor(lease.cursor), session: null };
    const { least, most } = newSessionPauseMs;
    await delay(least + Math.random() * (most - least), undefined, { signal: lease.signal }).catch(() => {});
  }
}

async function connectOnce(
  discord: Discord,
  host: ChannelHost,
  lease: LeaseRef,
  cursor: Cursor,
): Promise<ConnectionEnd> {
  const { account, call, threads, token, intents } = discord;
  const timely = (): AbortSignal => within(lease.signal, callWithinMs);
  const me = await discord.identify(timely());
  const url = cursor.session?.url ?? (await gatewayUrl(call, timely()));
  const readMissed = (since: Cursor, handle: (message: unknown) => Promise<void>) =>
    readChannels(discord, host, since, lease, handle);
  const { groups } = discord;
  const queue = new EventQueue({ account, call, host, lease, me, groups, threads, readMissed }, cursor);
  const ending = new AbortController();
  const end = runSocket({
    url,
    token,
    intents,
    shard: [lease.slot ?? 0, discord.shards],
    resume: cursor.session,
    storedSeq: () => queue.storedSeq,
    onEvent: (event) => {
      queue.push(event);
      if (event.type !== "READY" && event.type !== "RESUMED") return;
      host.report({ state: "connected", as: me.username });
      host.log.info({ nick: me.username, resumed: event.type === "RESUMED" }, "connected");
    },
    signal: AbortSignal.any([lease.signal, ending.signal]),
  });
  try {
    return await Promise.race([end, queue.failed]);
  } finally {
    ending.abort();
    await end;
    await queue.stop();
  }
}

async function gatewayUrl(call: Call, signal: AbortSignal): Promise<string> {
  const { url, session_start_limit: limit } = required(
    await call({ method: "GET", path: "/gateway/bot" }, GatewayBot, signal),
  );
  // Discord resets the token of a bot that begins too many sessions.
  if (limit.remaining < 1) {
    const hours = Math.ceil(limit.reset_after / 3_600_000);
    throw new PlatformUnavailableError(
      `Discord allows no new session for up to ${hours} h: too many were started today`,
    );
  }
  return url;
}

/** Reads the messages after the cursor in its conversations and the groups. A channel that cannot be read is skipped with a log line. */
async function readChannels(
  { call, groups, shards }: Discord,
  host: ChannelHost,
  { message, conversations }: Cursor,
  { signal, slot = 0 }: LeaseRef,
  handle: (message: unknown) => Promise<void>,
): Promise<void> {
  const oldest = snowflakeAt(Date.now() - oldestMissedMs);
  const since = message === null || BigInt(message) < BigInt(oldest) ? oldest : message;
  const timely = (): AbortSignal => within(signal, callWithinMs);
  for (const id of new Set([...groups, ...conversations])) {
    const channel = await settled(() => call({ method: "GET", path: `/channels/${id}` }, Channel, timely()), signal);
    if (channel.kind === "refused" && channel.status !== 401) {
      host.log.warn({ conversation: id, reason: channel.reason }, "missed messages not read");
      continue;
    }
    const { type, guild_id: guildId, last_message_id: last } = required(channel);
    if (shardOf(guildId, shards) !== slot) continue;
    const place = { channel_type: type, ...(typeof guildId === "string" ? { guild_id: guildId } : {}) };
    if (last === null || last === undefined || BigInt(last) <= BigInt(since)) continue;
    for (let after = since, page = 0; page < maxPages; page++) {
      const path = `/channels/${id}/messages?after=${after}&limit=${pageSize}`;
      const list = required(await settled(() => call({ method: "GET", path }, MessageList, timely()), signal));
      const ordered = list.toSorted((left, right) => (BigInt(left.id) < BigInt(right.id) ? -1 : 1));
      for (const each of ordered) await handle({ ...each, ...place });
      after = ordered.at(-1)?.id ?? after;
      if (list.length < pageSize) break;
    }
  }
}

const MessageList = z.array(z.looseObject({ id: Message.shape.id }));

/** https://discord.com/developers/docs/events/gateway#sharding */
function shardOf(guildId: string | null | undefined, shards: number): number {
  return typeof guildId === "string" ? Number((BigInt(guildId) >> 22n) % BigInt(shards)) : 0;
}

/** Repeats a read while Discord limits it. */
async function settled<Result>(read: () => Promise<Answer<Result>>, signal: AbortSignal): Promise<Answer<Result>> {
  for (;;) {
    const answer = await read();
    if (answer.kind !== "refused" || answer.status !== 429) return answer;
    await delay(answer.retryAfterMs ?? limitedPauseMs, undefined, { signal });
  }
}

/** The result of a call without which there is no connection. Throws as `resultOf`. */
export function required<Result>(answer: Answer<Result>): Result {
  return resultOf(answer, "Discord", ": reset it in the Developer Portal under Bot and set the variable again");
}
