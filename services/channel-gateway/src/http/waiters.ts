// The requests that wait for something: each ends when its caller goes away or when this replica drains.
import type { FastifyReply } from "fastify";

export class Waiters {
  readonly #open = new Set<AbortController>();
  #ended: Error | undefined;

  get count(): number {
    return this.#open.size;
  }

  /** A signal that aborts when the caller goes away, or with `reason` when the replica drains. */
  signalFor(reply: FastifyReply): AbortSignal {
    const controller = new AbortController();
    this.#open.add(controller);
    reply.raw.once("close", () => {
      this.#open.delete(controller);
      controller.abort(new Error("the caller went away"));
    });
    if (this.#ended !== undefined) controller.abort(this.#ended);
    return controller.signal;
  }

  /** Ends all of them, and every later one at once. */
  end(reason: Error): void {
    this.#ended = reason;
    for (const controller of this.#open) controller.abort(reason);
  }
}
