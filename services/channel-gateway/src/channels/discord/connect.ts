// Holds the connection while the lease is held: resumes the session of the cursor, or begins a new one and reads what was missed.
import { setTimeout as delay } from "node:timers/promises";
import { AccountRejectedError, type ChannelHost, type LeaseRef } from "../channel.ts";
import { PlatformUnavailableError } from "../outcome.ts";
import { withTimeout } from "../transport.ts";
import { callWithinMs, required, type Call } from "./api.ts";
import { parseCursor, type Cursor } from "./cursor.ts";
import { EventQueue } from "./event-queue.ts";
import { missedMessages } from "./missed.ts";
import { GatewayBot, type User } from "./schema.ts";
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
  const timely = (): AbortSignal => withTimeout(lease.signal, callWithinMs);
  const me = await discord.identify(timely());
  const url = cursor.session?.url ?? (await gatewayUrl(call, timely()));
  const missed = (since: Cursor) => missedMessages(discord, host, since, lease);
  const { groups } = discord;
  const queue = new EventQueue({ account, call, host, lease, me, groups, threads, missed }, cursor);
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
