// One WebSocket connection, shared by both kinds of clients. Frames are handled in order, buffers are limited in both directions, and a
// client that reads too slowly is disconnected.
import type { WebSocket } from "ws";
import type { GatewayEvents } from "../../events.ts";
import { HttpError } from "../errors.ts";

/** Buffered bytes above which live events are skipped, and above which a slow reader is disconnected. */
const softBytes = 256 * 1024;
const hardBytes = 4 * 1024 * 1024;
/** Unhandled frames of one client; at this limit the socket is paused. */
const maxWaitingFrames = 32;

/** Codes of RFC 6455 and its registry. */
const goingAway = 1001;
const tryAgainLater = 1013;
/** How long a client may take to answer the close of a replica that shuts down. A suspended one does not. */
const leaveMs = 2_000;

export interface PeerListener {
  /** Runs before the first frame is handled. */
  begin?(): Promise<void>;
  /** Handles one frame; the next one waits. */
  frame(text: string): Promise<void>;
  /** Called when `begin` or `frame` fails. */
  failed(error: unknown): void;
  gone(): void;
}

export class WsPeer {
  readonly #ws: WebSocket;
  readonly #events: GatewayEvents;
  readonly #listener: PeerListener;
  #work: Promise<void>;
  #waiting = 0;
  #alive = true;

  constructor(ws: WebSocket, events: GatewayEvents, listener: PeerListener) {
    this.#ws = ws;
    this.#events = events;
    this.#listener = listener;
    ws.on("message", (data, isBinary) => this.#receive(data, isBinary));
    ws.on("pong", () => {
      this.#alive = true;
    });
    // `close` follows.
    ws.on("error", () => undefined);
    ws.once("close", () => listener.gone());
    this.#work = this.#try(async () => listener.begin?.());
  }

  get isOpen(): boolean {
    return this.#ws.readyState === this.#ws.OPEN;
  }

  /** Whether so much is buffered that live events should be skipped. */
  get isSlow(): boolean {
    return this.#ws.bufferedAmount > softBytes;
  }

  /** Sends a ping; a client that did not answer the previous one is terminated. */
  ping(): void {
    if (!this.#alive) {
      this.#ws.terminate();
      return;
    }
    this.#alive = false;
    this.#ws.ping();
  }

  /** Closes the connection because the replica shuts down; the client may reconnect to any replica. */
  leave(): void {
    this.#ws.close(goingAway, "going away");
    setTimeout(() => this.#ws.terminate(), leaveMs).unref();
  }

  /** Closes the connection so that the client reconnects; buffered data of a slow reader is discarded. */
  close(reason: string): void {
    this.#ws.close(tryAgainLater, reason);
    if (this.isSlow) this.#ws.terminate();
  }

  send(text: string): void {
    if (!this.isOpen) return;
    if (this.#ws.bufferedAmount > hardBytes) {
      this.#events.slowClient("ws");
      this.close("reading too slowly");
      return;
    }
    this.#ws.send(text);
  }

  #receive(data: unknown, isBinary: boolean): void {
    if (++this.#waiting >= maxWaitingFrames) this.#ws.pause();
    // Sequential, so that messages are stored in the order they were sent.
    this.#work = this.#after(this.#work, isBinary ? null : String(data));
  }

  async #after(before: Promise<void>, text: string | null): Promise<void> {
    await before;
    await this.#try(() => {
      if (text === null) throw new HttpError(400, "invalid_request", "frames must be text");
      return this.#listener.frame(text);
    });
    if (--this.#waiting < maxWaitingFrames && this.#ws.isPaused) this.#ws.resume();
  }

  async #try(work: () => Promise<void> | undefined): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#listener.failed(error);
    }
  }
}
