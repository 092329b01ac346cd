// One session event, serialized at most once per transport, regardless of the number of watchers.
import type { SessionEvent } from "@parley/contracts";

export class EncodedEvent {
  readonly event: SessionEvent;
  /** Position in the session's log; undefined for a live event, which may be skipped. */
  readonly seq: number | undefined;
  readonly #sessionId: string;
  #json: string | undefined;
  #webSocket: string | undefined;
  #sse: string | undefined;

  constructor(sessionId: string, event: SessionEvent) {
    this.#sessionId = sessionId;
    this.event = event;
    this.seq = "seq" in event ? event.seq : undefined;
  }

  /** The event as JSON, preceded by the session's id. */
  get webSocket(): string {
    this.#webSocket ??= this.#text();
    return this.#webSocket;
  }

  /** A frame of a server-sent event stream; durable events carry their seq as id. */
  get sse(): string {
    if (this.#sse === undefined) {
      const id = this.seq === undefined ? "" : `id: ${this.seq}\n`;
      this.#sse = `event: ${this.event.type}\n${id}data: ${this.#text()}\n\n`;
    }
    return this.#sse;
  }

  #text(): string {
    this.#json ??= `{"session":${JSON.stringify(this.#sessionId)},${JSON.stringify(this.event).slice(1)}`;
    return this.#json;
  }
}
