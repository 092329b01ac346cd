// What a connection serves: the subjects, and the handlers that run. Nothing that the server delivers stays without a reply when it ends.
import { WireError } from "@parley/contracts";
import type { Subscription } from "nats";
import type { Served } from "./request-options.ts";

export class Serving {
  readonly #open = new Set<Served>();
  /** Closed subscriptions that the server may still deliver to. */
  readonly #ending = new Set<Promise<void>>();
  readonly #running = new Set<Promise<void>>();

  /** `closed` is called when it closes: what is delivered after that must be refused. */
  add(subscription: Subscription, closed: () => void): Served {
    const served = {
      close: () => {
        closed();
        this.#open.delete(served);
        const ending = subscription
          .drain()
          // Closed already, or the connection is.
          .catch(() => undefined)
          .finally(() => this.#ending.delete(ending));
        this.#ending.add(ending);
      },
    };
    this.#open.add(served);
    return served;
  }

  /** Counts a handler until it has ended; `work` must not reject. */
  track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
  }

  /** Waits for the running handlers, then closes what is still open. `connected`: whether the server can deliver more. */
  async end(connected: () => boolean): Promise<void> {
    await Promise.all(this.#running);
    for (const served of this.#open) served.close();
    if (connected()) await Promise.all(this.#ending);
    await Promise.all(this.#running);
  }
}

/** The refusal of a request that arrives after its subject was closed. */
export function stopping(subject: string): WireError {
  return new WireError("UNAVAILABLE", `${subject}: this replica is stopping`);
}
