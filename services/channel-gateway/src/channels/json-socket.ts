// A WebSocket to a platform that sends JSON. It always ends, also when the peer is gone and does not answer the close.
import { parseJson } from "@parley/kit";
import { WebSocket } from "ws";

export interface JsonSocketOptions {
  /** It may contain a ticket, and no error contains it. */
  url: string;
  maxMessageBytes: number;
  openWithinMs: number;
  /** Receives each message; undefined for a text that is not JSON. */
  onMessage: (message: unknown) => void;
  /** Called for each frame, also for pings and pongs. */
  onFrame?: () => void;
}

/** How a connection ended. `error`: the reason of a failure; null: one side has closed it with `code`. */
export interface SocketEnd {
  code: number;
  error: string | null;
}

const closeWithinMs = 500;

export class JsonSocket {
  /** Resolves when the connection has ended. */
  readonly closed: Promise<SocketEnd>;
  readonly #socket: WebSocket;

  constructor({ url, maxMessageBytes, openWithinMs, onMessage, onFrame = () => undefined }: JsonSocketOptions) {
    const { promise, resolve } = Promise.withResolvers<SocketEnd>();
    this.closed = promise;
    const options = { perMessageDeflate: false, maxPayload: maxMessageBytes, handshakeTimeout: openWithinMs };
    this.#socket = new WebSocket(url, options);
    let failure: string | null = null;
    this.#socket.on("message", (data: Buffer) => {
      onFrame();
      onMessage(parseJson(data.toString("utf8")));
    });
    this.#socket.on("ping", onFrame).on("pong", onFrame);
    this.#socket.on("error", (error) => {
      failure ??= "code" in error && typeof error.code === "string" ? error.code : error.message.replaceAll(url, "…");
      this.#socket.terminate();
    });
    this.#socket.on("close", (code) => resolve({ code, error: failure }));
  }

  /** Without effect when the connection is not open. */
  send(message: object): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  ping(): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.ping();
  }

  /** Says goodbye with a code, and cuts the connection when there is no answer. */
  close(code: number): void {
    this.#socket.close(code);
    const force = setTimeout(() => this.terminate(), closeWithinMs);
    void this.closed.then(() => clearTimeout(force));
  }

  /** Cuts the connection. */
  terminate(): void {
    this.#socket.terminate();
  }
}
