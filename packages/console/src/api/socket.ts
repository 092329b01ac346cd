// One WebSocket to the gateway for live events. It reconnects by itself and continues each subscription after the last received seq,
// at any replica that answers.
import type { SessionEvent } from "@parley/contracts";
import { signal } from "@preact/signals";

/** The state of the connection, for the shell. */
export const connection = signal<"connecting" | "open" | "closed">("connecting");

interface EventSink {
  /** The last received seq. */
  readonly seq: () => number;
  readonly event: (event: SessionEvent) => void;
  /** The subscription was made again: live events in between may be missing. */
  readonly resumed: () => void;
}

const firstRetryMs = 200;
const maxRetryMs = 4_000;
/** A dead connection is noticed within two of these. */
const pingMs = 10_000;

type Frame = SessionEvent & { session?: string };

class LiveSocket {
  #socket: WebSocket | undefined;
  #retryMs = firstRetryMs;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #ping: ReturnType<typeof setInterval> | undefined;
  #answered = true;
  readonly #sinks = new Map<string, EventSink>();

  /** Follows a session by its id until the returned function is called. */
  follow(session: string, sink: EventSink): () => void {
    this.#sinks.set(session, sink);
    if (this.#socket?.readyState === WebSocket.OPEN) this.#subscribe(session, sink);
    else this.#connect();
    return () => {
      if (this.#sinks.get(session) !== sink) return;
      this.#sinks.delete(session);
      if (this.#socket?.readyState === WebSocket.OPEN) this.#send({ type: "unsubscribe", session });
    };
  }

  /** Connects immediately, for example when the machine is online again. */
  wake(): void {
    if (this.#sinks.size === 0 || this.#socket !== undefined) return;
    clearTimeout(this.#timer);
    this.#retryMs = firstRetryMs;
    this.#connect();
  }

  /** Closes the connection after a sign-out. */
  end(): void {
    this.#sinks.clear();
    this.#socket?.close();
  }

  #connect(): void {
    if (this.#socket !== undefined) return;
    clearTimeout(this.#timer);
    const { protocol, host } = window.location;
    const socket = new WebSocket(`${protocol === "https:" ? "wss" : "ws"}://${host}/api/ws`);
    this.#socket = socket;
    connection.value = connection.value === "closed" ? "closed" : "connecting";
    socket.addEventListener("open", () => {
      this.#retryMs = firstRetryMs;
      connection.value = "open";
      this.#startPing();
      for (const [session, sink] of this.#sinks) {
        sink.resumed();
        this.#subscribe(session, sink);
      }
    });
    socket.addEventListener("message", ({ data }) => this.#receive(String(data)));
    socket.addEventListener("close", () => this.#closed(socket));
  }

  #closed(socket: WebSocket): void {
    if (this.#socket !== socket) return;
    this.#socket = undefined;
    clearInterval(this.#ping);
    if (this.#sinks.size === 0) return;
    connection.value = "closed";
    this.#timer = setTimeout(() => this.#connect(), this.#retryMs);
    this.#retryMs = Math.min(maxRetryMs, this.#retryMs * 2);
  }

  #startPing(): void {
    clearInterval(this.#ping);
    this.#answered = true;
    this.#ping = setInterval(() => {
      const socket = this.#socket;
      if (socket === undefined) return;
      if (!this.#answered) {
        // `close` would wait for the peer.
        this.#closed(socket);
        socket.close();
        return;
      }
      this.#answered = false;
      this.#send({ type: "ping" });
    }, pingMs);
  }

  #receive(text: string): void {
    this.#answered = true;
    const frame = JSON.parse(text) as Frame;
    if (frame.session === undefined || (frame.type as string) === "subscribed") return;
    this.#sinks.get(frame.session)?.event(frame);
  }

  #subscribe(session: string, sink: EventSink): void {
    this.#send({ type: "subscribe", session, after: sink.seq() });
  }

  #send(frame: object): void {
    this.#socket?.send(JSON.stringify(frame));
  }
}

export const live = new LiveSocket();
window.addEventListener("online", () => live.wake());
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") live.wake();
});
