// Socket mode: connections by single-use tickets, envelopes to one of several sockets, acknowledgements, and announced disconnects.
import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer, type WebSocket } from "ws";
import { z } from "zod";
import type { Attempt, Delivery, Transport } from "./deliveries.ts";
import type { SlackState } from "./state.ts";

/** The most connections of one app. */
const maxSockets = 10;

const Acknowledgement = z.object({ envelope_id: z.string(), payload: z.unknown().optional() });

interface Socket {
  connection: WebSocket;
  /** It has been told to reconnect and gets no more envelopes. */
  draining: boolean;
}

export class Sockets implements Transport {
  readonly #state: SlackState;
  readonly #ackTimeoutMs: number;
  readonly #server = new WebSocketServer({ noServer: true });
  readonly #tickets = new Set<string>();
  #sockets: Socket[] = [];
  #next = 0;
  #closed = false;
  #connection: PromiseWithResolvers<void> | null = null;
  readonly #waiting = new Map<string, { delivery: Delivery; end: (failure: string | null) => void }>();
  readonly #lastSocket = new Map<Delivery, Socket>();
  /** How many connections were opened so far. */
  opened = 0;
  /** Acknowledgements of unknown envelopes. */
  stray = 0;

  constructor(state: SlackState, ackTimeoutMs: number) {
    this.#state = state;
    this.#ackTimeoutMs = ackTimeoutMs;
  }

  get open(): number {
    return this.#sockets.filter(({ draining }) => !draining).length;
  }

  newTicket(): string {
    const ticket = randomUUID();
    this.#tickets.add(ticket);
    return ticket;
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const ticket = new URL(request.url ?? "/", "http://127.0.0.1").searchParams.get("ticket") ?? "";
    if (!this.#tickets.delete(ticket)) {
      socket.end("HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n");
      return;
    }
    this.#server.handleUpgrade(request, socket, head, (connection) => this.#accept(connection));
  }

  /** Tells the open sockets to reconnect, as the real service does hourly; `link_disabled`: socket mode was switched off. */
  announce(reason: "warning" | "refresh_requested" | "link_disabled"): void {
    for (const socket of this.#sockets) {
      socket.draining = reason !== "warning";
      socket.connection.send(JSON.stringify({ type: "disconnect", reason, debug_info: { host: "stand-in" } }));
    }
  }

  /** Sends text that is not an envelope to all sockets. */
  sendRaw(text: string): void {
    for (const { connection } of this.#sockets) connection.send(text);
  }

  /** Waits no longer for acknowledgements, as after the timeout. */
  timeOut(): void {
    for (const { end } of this.#waiting.values()) end("timeout");
  }

  /** Closes all sockets without a word. */
  drop(): void {
    for (const { connection } of this.#sockets) connection.terminate();
  }

  async deliver(delivery: Delivery, attempt: Attempt): Promise<string | null> {
    const socket = await this.#available(delivery);
    if (socket === null) return "no_connection";
    this.#lastSocket.set(delivery, socket);
    const envelopeId = randomUUID();
    const { promise, resolve } = Promise.withResolvers<string | null>();
    const timer = setTimeout(() => resolve("timeout"), this.#ackTimeoutMs);
    const broken = () => resolve("connection_closed");
    socket.connection.once("close", broken);
    this.#waiting.set(envelopeId, { delivery, end: resolve });
    delivery.sends += 1;
    socket.connection.send(
      JSON.stringify({
        envelope_id: envelopeId,
        type: delivery.type,
        payload: delivery.payload,
        accepts_response_payload: delivery.type === "slash_commands",
        ...(delivery.type === "events_api"
          ? { retry_attempt: attempt.number, retry_reason: attempt.reason ?? "" }
          : {}),
      }),
    );
    this.#state.changed();
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      socket.connection.off("close", broken);
    }
  }

  close(): void {
    this.#closed = true;
    this.#wakeAttempts();
    this.drop();
    this.#server.close();
  }

  /**
   * The socket for an attempt; null: the platform was closed. The real service tries for minutes. The pauses of tests are shorter than a
   * reconnection on a busy machine, so an attempt waits for a connection.
   */
  async #available(delivery: Delivery): Promise<Socket | null> {
    for (;;) {
      if (this.#closed) return null;
      const socket = this.#choose(delivery);
      if (socket !== undefined) return socket;
      this.#connection ??= Promise.withResolvers();
      await this.#connection.promise;
    }
  }

  #wakeAttempts(): void {
    this.#connection?.resolve();
    this.#connection = null;
  }

  /** Another socket than the last one, if there is one. */
  #choose(delivery: Delivery): Socket | undefined {
    const open = this.#sockets.filter(({ draining }) => !draining);
    const last = this.#lastSocket.get(delivery);
    const others = open.filter((socket) => socket !== last);
    const choice = others.length > 0 ? others : open;
    this.#next += 1;
    return choice[this.#next % Math.max(1, choice.length)];
  }

  #accept(connection: WebSocket): void {
    if (this.#sockets.length >= maxSockets) {
      connection.send(JSON.stringify({ type: "disconnect", reason: "too_many_websockets" }));
      connection.close();
      return;
    }
    const socket: Socket = { connection, draining: false };
    this.#sockets.push(socket);
    this.opened += 1;
    connection.on("message", (data: Buffer) => this.#acknowledge(data.toString("utf8")));
    connection.on("error", () => connection.terminate());
    connection.on("close", () => {
      this.#sockets = this.#sockets.filter((other) => other !== socket);
      this.#state.changed();
    });
    connection.send(
      JSON.stringify({
        type: "hello",
        num_connections: this.#sockets.length,
        debug_info: { host: "stand-in", build_number: 1, approximate_connection_time: 18_060 },
        connection_info: { app_id: this.#state.appId },
      }),
    );
    this.#wakeAttempts();
    this.#state.changed();
  }

  #acknowledge(text: string): void {
    const parsed = Acknowledgement.safeParse(jsonOf(text));
    const found = parsed.success ? this.#waiting.get(parsed.data.envelope_id) : undefined;
    if (!parsed.success || found === undefined) {
      this.stray += 1;
      this.#state.changed();
      return;
    }
    // A late acknowledgement counts: the event is not tried again.
    found.delivery.acknowledgements += 1;
    found.delivery.answer = parsed.data.payload;
    found.end(null);
    this.#state.changed();
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
