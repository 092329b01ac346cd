// Hands everything that one pass of the event loop sends to the NATS client together: one write to the socket instead of one for each
// message. A write costs more processor time than encoding a message, and it often wakes another process.
import type { Msg, MsgHdrs, NatsConnection } from "nats";
import { omitUndefined } from "@parley/kit";

import { createReplyKey, opened, sealed, withReplyKey } from "./sealed-reply.ts";

export class Sender {
  readonly #connection: NatsConnection;
  readonly #sealsReplies: boolean;
  #waiting: (() => void)[] = [];

  /** `sealsReplies`: the replies to its requests are readable for this process only. */
  constructor(connection: NatsConnection, { sealsReplies }: { sealsReplies: boolean }) {
    this.#connection = connection;
    this.#sealsReplies = sealsReplies;
  }

  /** Sends a request and resolves with the text of its reply. Rejects with the client's error. */
  async request(
    subject: string,
    payload: Uint8Array,
    timeoutMs: number,
    headers: MsgHdrs | undefined,
  ): Promise<string> {
    const key = this.#sealsReplies ? createReplyKey() : undefined;
    const carrier = key === undefined ? headers : withReplyKey(headers, key);
    const options = omitUndefined({ timeout: timeoutMs, headers: carrier });
    const reply = await new Promise<Msg>((resolve, reject) => {
      this.#add(() => void this.#connection.request(subject, payload, options).then(resolve, reject));
    });
    return key === undefined ? reply.string() : opened(reply, key);
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
      if (this.#connection.isClosed()) return;
      const { payload: reply, ...options } = sealed(message, payload);
      message.respond(reply, options);
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
