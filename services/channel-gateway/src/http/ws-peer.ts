// One WebSocket as both kinds of clients use it: frames are worked on in the order in which they came, what may wait on either side
// has a bound, and whoever reads too slowly is closed and comes again.
import type { WebSocket } from "ws";
import type { GatewayEvents } from "../events.ts";
import { HttpError } from "./errors.ts";

/** What may wait for a slow reader before live events are left out, and before it is closed. */
const softBytes = 256 * 1024;
const hardBytes = 4 * 1024 * 1024;
/** Frames of one client that wait to be worked on; beyond it the socket is not read. */
const maxWaitingFrames = 32;

/** Codes of RFC 6455 and its registry. */
const goingAway = 1001;
const tryAgainLater = 1013;

export interface PeerListener {
  /** What is worked on before the first frame. */
  begin?(): Promise<void>;
  /** Works on one frame; the next one waits. */
  frame(text: string): Promise<void>;
  /** The beginning or a frame has failed. */
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

  /** So much waits already that what may be lost is left out. */
  get isSlow(): boolean {
    return this.#ws.bufferedAmount > softBytes;
  }

  /** Asks whether the client is still there; one that did not answer last time is let go. */
  ping(): void {
    if (!this.#alive) {
      this.#ws.terminate();
      return;
    }
    this.#alive = false;
    this.#ws.ping();
  }

  /** The replica goes: the client is to come again, anywhere. */
  leave(): void {
    this.#ws.close(goingAway, "going away");
  }

  /** Ends a connection whose client has to come again; it does not wait for what is still to be written. */
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
    // One after the other, so that what is said first is kept first.
    this.#work = this.#after(this.#work, isBinary ? null : String(data));
  }

  async #after(before: Promise<void>, text: string | null): Promise<void> {
    await before;
    await this.#try(() => {
      if (text === null) throw new HttpError(400, "invalid_request", "frames are text");
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
