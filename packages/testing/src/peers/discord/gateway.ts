// The gateway over WebSocket, as strict as the real one: order of opcodes, token, intents, shard, heartbeats, limits of the client, RESUME.
import type { Server } from "node:http";
import { WebSocketServer, type WebSocket } from "ws";
import { z } from "zod";
import { guildObject } from "./objects.ts";
import { GatewaySession, intent, intentOf, type GatewayEvent } from "./sessions.ts";
import type { DiscordState } from "./state.ts";

export interface GatewayOptions {
  heartbeatMs: number;
  /** Privileged intents that the developer portal has switched on. */
  messageContent: boolean;
  /** The least time between two IDENTIFY; a faster one gets an invalid session. */
  identifyEveryMs: number;
  /** The number of shards that the bot needs. */
  shards: number;
}

/** Limits of what a client sends. */
const maxClientBytes = 4_096;
const maxClientEvents = 120;
/** A connection without heartbeats lasts at least this long, so that a busy machine loses none with a short interval. */
const leastSilenceMs = 5_000;
const clientWindowMs = 60_000;
const knownIntents = (1 << 26) - 1;

const Payload = z.object({ op: z.number().int(), d: z.unknown().optional() });
const Identify = z.object({
  token: z.string(),
  properties: z.object({ os: z.string(), browser: z.string(), device: z.string() }),
  intents: z.number().int(),
  shard: z.tuple([z.number().int(), z.number().int()]).optional(),
});
const Resume = z.object({ token: z.string(), session_id: z.string(), seq: z.number().int() });

interface Connection {
  socket: WebSocket;
  session: GatewaySession | null;
}

export class Gateway {
  /** How often clients identified, resumed, and were refused a resume. */
  identified = 0;
  resumed = 0;
  resumesRefused = 0;
  /** Heartbeats with their number. */
  readonly heartbeats: (number | null)[] = [];
  /** Close codes of connections that the client closed. */
  readonly closedByClient: number[] = [];
  /** How often each message was delivered, by its id. */
  readonly deliveries = new Map<string, number>();
  /** Heartbeats are not acknowledged, as on a connection that is half dead. */
  muted = false;
  #lastIdentifyMs = Number.NEGATIVE_INFINITY;
  readonly #state: DiscordState;
  readonly #token: string;
  readonly #options: GatewayOptions;
  readonly #url: () => string;
  readonly #sessions = new Map<string, GatewaySession>();
  readonly #connections = new Set<Connection>();
  readonly #server = new WebSocketServer({ noServer: true, maxPayload: 1_048_576 });

  constructor(state: DiscordState, token: string, options: GatewayOptions, url: () => string) {
    this.#state = state;
    this.#token = token;
    this.#options = options;
    this.#url = url;
  }

  /** Accepts WebSocket connections on the server of the REST API. */
  attach(server: Server): void {
    server.on("upgrade", (request, socket, head) => {
      this.#server.handleUpgrade(request, socket, head, (client) => this.#open(client, request.url ?? "/"));
    });
  }

  get connected(): number {
    return [...this.#connections].filter(({ session }) => session !== null).length;
  }

  get sessions(): number {
    return this.#sessions.size;
  }

  /** Sends an event to every session with the intent for it. */
  dispatch(type: string, data: Record<string, unknown>): void {
    const needed = intentOf(type, data["guild_id"] === undefined);
    for (const session of this.#sessions.values()) {
      if (needed !== 0 && (session.intents & needed) === 0) continue;
      if (!session.receives(data["guild_id"])) continue;
      session.dispatch(type, this.#visible(session, type, data));
    }
  }

  /** Ends connections: op 7, op 9, a close code, or without a word. */
  disconnect(how: "reconnect" | "invalid" | "invalid_resumable" | "drop" | number): void {
    for (const { socket } of this.#connections) {
      if (how === "drop") socket.terminate();
      else if (typeof how === "number") socket.close(how);
      else socket.send(JSON.stringify(how === "reconnect" ? { op: 7, d: null } : { op: 9, d: how !== "invalid" }));
    }
  }

  /** Sends any text on every connection. */
  sendRaw(text: string): void {
    for (const { socket } of this.#connections) socket.send(text);
  }

  /** Forgets every session, as after a long time without a connection. */
  forgetSessions(): void {
    this.#sessions.clear();
  }

  close(): void {
    for (const { socket } of this.#connections) socket.terminate();
    this.#server.close();
  }

  #open(socket: WebSocket, url: string): void {
    const query = new URL(url, "ws://gateway").searchParams;
    if (query.get("v") !== "10" || query.get("encoding") !== "json") {
      socket.close(4012, "Invalid API version");
      return;
    }
    const connection: Connection = { socket, session: null };
    this.#connections.add(connection);
    const { heartbeatMs } = this.#options;
    socket.send(JSON.stringify({ op: 10, d: { heartbeat_interval: heartbeatMs, _trace: [] } }));
    const silenceMs = Math.max(heartbeatMs * 2, leastSilenceMs);
    const expectHeartbeat = () => setTimeout(() => socket.close(4009, "Session timed out"), silenceMs);
    let heartbeatMissing = expectHeartbeat();
    const times: number[] = [];
    socket.on("message", (data: Buffer) => {
      const now = performance.now();
      times.push(now);
      while ((times[0] ?? now) < now - clientWindowMs) times.shift();
      if (times.length > maxClientEvents) socket.close(4008, "Rate limited");
      else if (data.length > maxClientBytes) socket.close(4002, "Decode error");
      else if (this.#receive(connection, data.toString("utf8")) === "heartbeat") {
        clearTimeout(heartbeatMissing);
        heartbeatMissing = expectHeartbeat();
      }
      this.#state.changed();
    });
    socket.on("error", () => socket.terminate());
    socket.on("close", (code) => {
      clearTimeout(heartbeatMissing);
      this.#connections.delete(connection);
      const { session } = connection;
      if (code < 3_000 || code >= 4_000) this.closedByClient.push(code);
      if (session !== null) {
        session.send = null;
        // A client that says goodbye does not come back.
        if (code === 1000 || code === 1001) this.#sessions.delete(session.id);
      }
      this.#state.changed();
    });
  }

  #receive(connection: Connection, text: string): "heartbeat" | undefined {
    const { socket } = connection;
    const payload = Payload.safeParse(parseJson(text));
    const { op, d } = payload.data ?? { op: null, d: null };
    if (op === 1) {
      const seq = typeof d === "number" ? d : null;
      this.heartbeats.push(seq);
      if (seq !== null) connection.session?.confirm(seq);
      if (!this.muted) socket.send(JSON.stringify({ op: 11, d: null }));
      return "heartbeat";
    }
    if (op === 2) this.#identify(connection, d);
    else if (op === 6) this.#resume(connection, d);
    else if (op === null) socket.close(4002, "Decode error");
    else if (op !== 3 && op !== 4 && op !== 8) socket.close(4001, "Unknown opcode");
    else if (connection.session === null) socket.close(4003, "Not authenticated");
    return undefined;
  }

  #identify(connection: Connection, data: unknown): void {
    const { socket } = connection;
    const given = Identify.safeParse(data);
    if (connection.session !== null) return socket.close(4005, "Already authenticated");
    if (!given.success) return socket.close(4002, "Decode error");
    const { token, intents, shard = [0, 1] } = given.data;
    if (token.replace(/^Bot /, "") !== this.#token) return socket.close(4004, "Authentication failed.");
    if (intents < 0 || intents > knownIntents) return socket.close(4013, "Invalid intent(s).");
    if ((intents & intent.messageContent) !== 0 && !this.#options.messageContent)
      return socket.close(4014, "Disallowed intent(s).");
    if (shard[0] < 0 || shard[0] >= shard[1]) return socket.close(4010, "Invalid shard.");
    if (shard[1] < this.#options.shards) return socket.close(4011, "Sharding required.");
    const now = performance.now();
    if (now - this.#lastIdentifyMs < this.#options.identifyEveryMs) return this.#refuse(socket);
    this.#lastIdentifyMs = now;
    this.identified += 1;
    const session = new GatewaySession(intents, shard);
    this.#sessions.set(session.id, session);
    this.#bind(connection, session);
    const { bot, guildId, applicationId } = this.#state;
    session.dispatch("READY", {
      v: 10,
      user: { ...bot, mfa_enabled: false, verified: true },
      guilds: [{ id: guildId, unavailable: true }],
      session_id: session.id,
      resume_gateway_url: this.#url(),
      shard,
      application: { id: applicationId, flags: this.#options.messageContent ? 1 << 19 : 0 },
      private_channels: [],
      relationships: [],
    });
    if ((intents & intent.guilds) !== 0 && session.receives(guildId))
      session.dispatch("GUILD_CREATE", guildObject(this.#state));
  }

  #resume(connection: Connection, data: unknown): void {
    const { socket } = connection;
    const given = Resume.safeParse(data);
    if (connection.session !== null) return socket.close(4005, "Already authenticated");
    if (!given.success) return socket.close(4002, "Decode error");
    const { token, session_id: id, seq } = given.data;
    if (token.replace(/^Bot /, "") !== this.#token) return socket.close(4004, "Authentication failed.");
    const session = this.#sessions.get(id);
    if (session !== undefined && seq > session.lastSeq) return socket.close(4007, "Invalid seq");
    const missed = session?.after(seq) ?? null;
    if (session === undefined || missed === null) {
      this.resumesRefused += 1;
      return this.#refuse(socket);
    }
    for (const other of this.#connections) if (other.session === session) other.socket.close(4000, "Session resumed");
    this.resumed += 1;
    this.#bind(connection, session);
    for (const event of missed) session.send?.(event);
    session.dispatch("RESUMED", { _trace: [] });
  }

  #bind(connection: Connection, session: GatewaySession): void {
    connection.session = session;
    session.send = (event) => {
      this.#count(event);
      connection.socket.send(JSON.stringify(event));
    };
  }

  #refuse(socket: WebSocket): void {
    socket.send(JSON.stringify({ op: 9, d: false }));
  }

  #count({ t, d }: GatewayEvent): void {
    const { id } = d as { id?: unknown };
    if ((t === "MESSAGE_CREATE" || t === "INTERACTION_CREATE") && typeof id === "string")
      this.deliveries.set(id, (this.deliveries.get(id) ?? 0) + 1);
  }

  /** Without the intent, a message of a guild has its content only when it mentions the bot. */
  #visible(session: GatewaySession, type: string, data: Record<string, unknown>): Record<string, unknown> {
    const restricted = /^MESSAGE_(?:CREATE|UPDATE)$/.test(type) && (session.intents & intent.messageContent) === 0;
    const mentions = (data["mentions"] ?? []) as { id: string }[];
    const own = (data["author"] as { id?: string } | undefined)?.id === this.#state.bot.id;
    if (!restricted || data["guild_id"] === undefined || own || mentions.some(({ id }) => id === this.#state.bot.id))
      return data;
    return { ...data, content: "", attachments: [], embeds: [], components: [] };
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
