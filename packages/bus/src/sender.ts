// Hands everything that one pass of the event loop sends to the NATS client together: one write to the socket instead of one for each
// message. A write costs more processor time than encoding a message, and it often wakes another process.
import type { Msg, MsgHdrs, NatsConnection } from "nats";
import { omitUndefined } from "@parley/kit";

export class Sender {
  readonly #connection: NatsConnection;
  #waiting: (() => void)[] = [];

  constructor(connection: NatsConnection) {
    this.#connection = connection;
  }

  /** Sends a request and resolves with its reply. Rejects with the client's error. */
  request(subject: string, payload: Uint8Array, timeoutMs: number, headers: MsgHdrs | undefined): Promise<Msg> {
    return new Promise((resolve, reject) => {
      const options = omitUndefined({ timeout: timeoutMs, headers });
      this.#add(() => void this.#connection.request(subject, payload, options).then(resolve, reject));
    });
  }

  /** Publishes a message; it is lost when the connection has been closed. */
  publish(subject: string, payload: Uint8Array, headers: MsgHdrs | undefined): void {
    this.#add(() => {
      if (!this.#connection.isClosed()) this.#connection.publish(subject, payload, omitUndefined({ headers }));
    });
  }

  /** Sends the reply to a request; it is lost when the connection has been closed. */
  respond(message: Msg, payload: Uint8Array): void {
    this.#add(() => {
      if (!this.#connection.isClosed()) message.respond(payload);
    });
  }

  /** Sends what waits now, before something that must follow it. */
  flush(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const send of waiting) send();
  }

  #add(send: () => void): void {
    if (this.#waiting.push(send) === 1) setImmediate(() => this.flush());
  }
}
