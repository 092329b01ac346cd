// The IRC channel: one nick on one server, one leased connection. It depends neither on the store nor on access rules.
//
// After a join the server may replay the channel's history (InspIRCd's chanhistory). Replayed messages with ids that are newer than the
// last stored one are accepted: they arrived while the connection moved to another replica.
import { errorMessage, ircChannel, type IrcAccount } from "@parley/contracts";
import type { ChannelAdapter, ChannelHost, LeaseRef } from "../channel.ts";
import { IrcConnection, type ConnectionTimes } from "./connection.ts";
import { InboundQueue } from "../inbound-queue.ts";
import { AccountSettingsError, isLoopback } from "../settings-check.ts";
import { isWord, type IrcLine } from "./line.ts";
import { parse } from "./parse.ts";
import { prefixOf, sendFailure, Sender } from "./send.ts";

/** Replayed messages older than this are ignored. */
const oldestHistoryMs = 5 * 60_000;
/** Replayed times are truncated to seconds; a message that is read twice is recognised as a duplicate by its id. */
const historyTimeMs = 1_000;
/** Limit below the gateway's send timeout. */
const connectedWithinMs = 4_000;

export interface IrcSecrets {
  /** Password of the services account with the nick's name; used only for SASL PLAIN. */
  password?: string;
}

/** Overrides for tests and for servers with different limits. */
export interface IrcTuning {
  times?: Partial<ConnectionTimes>;
}

export function createIrc(
  account: string,
  settings: IrcAccount,
  secrets: IrcSecrets,
  { times = {} }: IrcTuning = {},
): ChannelAdapter {
  const { host: server, port, tls, nick, groups } = settings;
  const refuse = (problem: string): never => {
    throw new AccountSettingsError("irc", account, problem);
  };
  if (secrets.password !== undefined && !tls && !isLoopback(server)) {
    refuse("a password requires TLS; set tls = true or remove password_env.");
  }
  const wrong = groups.find((group) => !/^[#&+!]/.test(group) || !isWord(group) || group.includes(","));
  if (wrong !== undefined) refuse(`"${wrong}" in groups is not a valid IRC channel name.`);
  const spellings = [...groups, ...settings.owners, ...settings.allow_from];
  let current: { connection: IrcConnection; sender: Sender } | null = null;
  const waiting = new Set<() => void>();
  const untilConnected = async (signal: AbortSignal): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const go = (): void => resolve();
    waiting.add(go);
    signal.addEventListener("abort", go, { once: true });
    if (signal.aborted) go();
    await promise;
    waiting.delete(go);
    signal.removeEventListener("abort", go);
  };
  /** When this process first connected without a cursor. */
  let startedMs: number | null = null;

  /** Saves when the account was first connected, so that its next connection reads what was missed even if no message arrived before. */
  const saveStart = (host: ChannelHost, lease: LeaseRef): void => {
    startedMs ??= Date.now();
    host.checkpoint({ lease, cursor: new Date(startedMs).toISOString() }).catch((error: unknown) => {
      host.log.warn({ reason: errorMessage(error) }, "connection time not saved");
    });
  };

  const connect = async (host: ChannelHost, lease: LeaseRef): Promise<void> => {
    const intake = new InboundQueue(host, lease);
    const history = new Set<string>();
    const keptUntilMs = lease.cursor === null ? Number.NaN : Date.parse(lease.cursor);
    // What an earlier connection received counts only if it was stored.
    const openedWith = Number.isNaN(keptUntilMs) ? startedMs : keptUntilMs;
    let seenUntilMs = openedWith ?? 0;
    const senders = new WeakMap<IrcConnection, Sender>();

    const onLine = (line: IrcLine, connection: IrcConnection): void => {
      if (senders.get(connection)?.take(line) === true) return;
      const [reference = "", batchType] = line.params;
      if (line.command === "BATCH" && reference.startsWith("+") && batchType === "chathistory")
        history.add(reference.slice(1));
      if (line.command !== "PRIVMSG") return;
      const connectionState = { account, nick: connection.nick, mapping: connection.mapping, spellings };
      const now = new Date();
      const parsed = parse(line, connectionState, now);
      if (parsed.kind !== "message") return;
      const atMs = parsed.at.getTime();
      if (history.has(line.tags.get("batch") ?? "")) {
        const since = Math.max((openedWith ?? Infinity) - historyTimeMs, now.getTime() - oldestHistoryMs);
        const missed = atMs >= since;
        if (!missed || !line.tags.has("msgid")) return;
      }
      seenUntilMs = Math.max(seenUntilMs, atMs);
      intake.push(parsed.draft, new Date(seenUntilMs).toISOString());
    };
    const onNotice = (message: string): void => host.log.warn({}, message);

    const connection = await IrcConnection.open(
      { host: server, port, tls, nick, password: secrets.password ?? null, channels: groups, times },
      lease.signal,
      onLine,
      onNotice,
    ).catch((error: unknown) => {
      if (lease.signal.aborted) return null;
      throw error;
    });
    if (connection === null) return;
    const sender = new Sender(connection);
    senders.set(connection, sender);
    current = { connection, sender };
    for (const go of waiting) go();
    host.report({ state: "connected", as: nick });
    if (openedWith === null) saveStart(host, lease);
    host.log.info({ server, nick, capabilities: connection.capabilities }, "connected");
    const { promise: aborted, resolve } = Promise.withResolvers<null>();
    const onAbort = (): void => resolve(null);
    lease.signal.addEventListener("abort", onAbort, { once: true });
    if (lease.signal.aborted) onAbort();
    try {
      const reason = await Promise.race([connection.closed, aborted, intake.fenced]);
      if (reason !== null) {
        host.log.warn({ reason }, "connection lost");
        host.report({ state: "failing", reason });
      }
    } finally {
      lease.signal.removeEventListener("abort", onAbort);
      if (current?.connection === connection) current = null;
      await connection.close("Moving");
      sender.lost();
    }
    await intake.settled();
  };

  const showTyping = (conversation: string, state: "active" | "done"): void => {
    if (current === null || !isWord(conversation) || !current.connection.has("message-tags")) return;
    current.connection.write({ tags: { "+typing": state }, command: "TAGMSG", params: [conversation] });
  };

  return {
    channel: ircChannel.name,
    account,
    capabilities: ircChannel.capabilities,
    ownedConnection: true,
    connect,
    maxLength(address) {
      const room = current?.connection.roomFor(address.conversation) ?? ircChannel.capabilities.text.maxLength;
      return room - Buffer.byteLength(prefixOf(address));
    },
    async send(part, signal) {
      if (part.text === null) return { state: "dropped", reason: "files are not supported" };
      if (current === null) await untilConnected(AbortSignal.any([signal, AbortSignal.timeout(connectedWithinMs)]));
      if (current === null) return sendFailure(part, "not connected");
      return current.sender.send(part, part.text.plain, signal);
    },
    typing: async ({ conversation }) => showTyping(conversation, "active"),
    stopTyping: async ({ conversation }) => showTyping(conversation, "done"),
  };
}
