// Open requests that wait for an event. Each ends when its caller disconnects or this replica drains.
import type { FastifyReply } from "fastify";

/** Shared: every response ends with it, and an error of its own costs each request a stack trace. */
const disconnected = new Error("the caller disconnected");

export class OpenRequests {
  readonly #open = new Set<AbortController>();
  #ended: Error | undefined;

  get count(): number {
    return this.#open.size;
  }

  /** Returns a signal that aborts when the caller disconnects, or with `reason` when the replica drains. */
  signalFor(reply: FastifyReply): AbortSignal {
    const controller = new AbortController();
    this.#open.add(controller);
    const leave = () => {
      this.#open.delete(controller);
      controller.abort(disconnected);
    };
    reply.raw.once("close", leave);
    // A caller that has disconnected before causes no further event.
    if (reply.raw.closed) leave();
    if (this.#ended !== undefined) controller.abort(this.#ended);
    return controller.signal;
  }

  /** Ends all open requests, and every later one immediately. */
  end(reason: Error): void {
    this.#ended = reason;
    for (const controller of this.#open) controller.abort(reason);
  }
}
