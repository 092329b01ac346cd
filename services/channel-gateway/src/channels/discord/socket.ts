// One connection to the gateway: HELLO, IDENTIFY or RESUME, heartbeats. It passes events to its owner and depends on nothing of the host.
// The library @discordjs/ws is not used: its heartbeats and RESUME name the last received event, and Discord may forget an event that was
// confirmed so, although it is not stored yet. Here both name the last stored one.
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { JsonSocket } from "../json-socket.ts";

export interface GatewayEvent {
  type: string;
  seq: number;
  data: unknown;
}

/** Why a connection ended. `session_lost`: the session cannot be resumed. `rejected`: retrying soon is pointless. */
export type ConnectionEnd = { kind: "lost" | "session_lost" | "rejected"; reason: string };

export interface SocketOptions {
  url: string;
  token: string;
  intents: number;
  shard: readonly [number, number];
  /** The session to resume and its last stored event; null: a new session. */
  resume: { id: string; seq: number } | null;
  /** The number of the last stored event of this session. */
  storedSeq: () => number | null;
  onEvent: (event: GatewayEvent) => void;
  signal: AbortSignal;
}

/** A new connection must have a session within this time. */
const openWithinMs = 20_000;
const lateReadMs = 500;
const maxMessageBytes = 32 * 1024 * 1024;
/** Any code but 1000 and 1001, which would end the session. */
const resumableClose = 4_000;

const Payload = z.object({
  op: z.number().int(),
  d: z.unknown().optional(),
  s: z.number().int().nullish(),
  t: z.string().nullish(),
});
const Hello = z.object({ heartbeat_interval: z.number().min(50).max(600_000) });

/** Resolves when the connection has ended; never rejects. After `signal` aborts no event is passed. */
export async function runSocket(options: SocketOptions): Promise<ConnectionEnd> {
  const { signal, resume, token } = options;
  if (signal.aborted) return { kind: "lost", reason: "cancelled" };
  const ending = new AbortController();
  let end: ConnectionEnd | null = null;
  const finish = (kind: ConnectionEnd["kind"], reason: string): void => {
    if (end !== null) return;
    end = { kind, reason };
    ending.abort();
    socket.close(resumableClose);
  };
  const send = (op: number, d: unknown): void => socket.send({ op, d });
  let acknowledged = true;
  const sendHeartbeat = (): void => {
    acknowledged = false;
    send(1, options.storedSeq());
  };
  const keepAlive = async (intervalMs: number): Promise<void> => {
    // The first heartbeat after a random part of the interval, as Discord requires.
    await delay(intervalMs * Math.random(), undefined, { signal: ending.signal });
    for (;;) {
      sendHeartbeat();
      await delay(intervalMs, undefined, { signal: ending.signal });
      // A process that was stalled still has to read what arrived in time.
      if (!acknowledged) await delay(lateReadMs, undefined, { signal: ending.signal });
      if (!acknowledged) return finish("lost", "a heartbeat was not acknowledged");
    }
  };
  const receive = (message: unknown): void => {
    const payload = Payload.safeParse(message);
    if (!payload.success || end !== null) return;
    const { op, d, s, t } = payload.data;
    if (op === 0 && typeof s === "number" && typeof t === "string") {
      if (t === "READY" || t === "RESUMED") clearTimeout(opening);
      options.onEvent({ type: t, seq: s, data: d });
    } else if (op === 1) sendHeartbeat();
    else if (op === 7) finish("lost", "Discord requested a new connection");
    else if (op === 9) finish(d === true ? "lost" : "session_lost", "Discord does not know the session");
    else if (op === 11) acknowledged = true;
    else if (op === 10) {
      const hello = Hello.safeParse(d);
      if (!hello.success) return finish("lost", "invalid HELLO");
      void keepAlive(hello.data.heartbeat_interval).catch(() => {});
      if (resume !== null) send(6, { token, session_id: resume.id, seq: resume.seq });
      else
        send(2, {
          token,
          intents: options.intents,
          shard: options.shard,
          properties: { os: process.platform, browser: "parley", device: "parley" },
        });
    }
  };
  const socket = new JsonSocket({
    url: `${options.url.replace(/\/+$/, "")}/?v=10&encoding=json`,
    maxMessageBytes,
    openWithinMs,
    onMessage: receive,
  });
  const opening = setTimeout(() => finish("lost", "no session within 20 s"), openWithinMs);
  const onAbort = (): void => finish("lost", "cancelled");
  signal.addEventListener("abort", onAbort, { once: true });
  const { code, error } = await socket.closed;
  ending.abort();
  clearTimeout(opening);
  signal.removeEventListener("abort", onAbort);
  return end ?? (error === null ? endOf(code) : { kind: "lost", reason: error });
}

/** What to do after Discord closed the connection: https://discord.com/developers/docs/topics/opcodes-and-status-codes */
function endOf(code: number): ConnectionEnd {
  const rejected: Record<number, string> = {
    4004: "the token is refused (4004): reset it in the Developer Portal under Bot and enter the new one",
    4010: "the shard is invalid (4010)",
    4011: "the bot is in too many servers for its connections (4011): raise shards",
    4012: "this version of the gateway is no longer supported (4012): update Parley",
    4013: "the intents are invalid (4013): update Parley",
    4014: "the Message Content Intent is not allowed (4014): switch it on in the Developer Portal under Bot → Privileged Gateway Intents, or set require_mention = true",
  };
  const reason = rejected[code];
  if (reason !== undefined) return { kind: "rejected", reason };
  return {
    kind: code === 4007 || code === 4009 ? "session_lost" : "lost",
    reason: `Discord closed the connection (${code})`,
  };
}
