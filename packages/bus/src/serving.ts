// What a connection serves: the subjects, and the handlers that run. Nothing that the server delivers stays without a reply when it ends.
import { WireError } from "@parley/contracts";
import type { Subscription } from "nats";
import type { Served } from "./request-options.ts";

export class Serving {
  readonly #open = new Set<Served>();
  readonly #running = new Set<Promise<void>>();

  /** `closed` is called when it closes: what is delivered after that must be refused. */
  add(subscription: Subscription, closed: () => void): Served {
    const served = {
      close: () => {
        closed();
        this.#open.delete(served);
        // Ends after what the server delivers to it. Rejects when it is closed already, or its connection is.
        subscription.drain().catch(() => undefined);
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

  /** Waits for the running handlers, then closes what is still open: what arrives after that is refused. */
  async end(): Promise<void> {
    await Promise.all(this.#running);
    for (const served of this.#open) served.close();
    await Promise.all(this.#running);
  }
}

/** The refusal of a request that arrives after its subject was closed. */
export function stopping(subject: string): WireError {
  return new WireError("UNAVAILABLE", `${subject}: this replica is stopping`);
}
