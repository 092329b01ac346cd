// A bounded queue of events for one observer. Events beyond its capacity are dropped and counted, so a slow observer affects nothing
// else. Independent of the transport.
import type { SessionEvent } from "@parley/contracts";

export interface Batch {
  /** Each a JSON object. */
  events: string[];
  /** Events dropped since the previous batch. */
  dropped: number;
}

/** The size limit of a batch; a single event may exceed it. */
const maxBatchCharacters = 1024 * 1024;

export class Batches {
  readonly #places: number;
  #waiting: string[] = [];
  #dropped = 0;
  #wake: () => void = () => undefined;

  /** Holds at most `places` events. */
  constructor(places: number) {
    this.#places = places;
  }

  /** Returns false when the queue is full. */
  push(sessionId: string, event: SessionEvent): boolean {
    if (this.#waiting.length >= this.#places) {
      this.#dropped += 1;
      return false;
    }
    this.#waiting.push(JSON.stringify({ session: sessionId, ...event }));
    this.#wake();
    return true;
  }

  /** Counts the events of a failed post as dropped; the next batch reports them. */
  lost(batch: Batch): void {
    this.#dropped += batch.dropped + batch.events.length;
  }

  /** Waits for the first event, then returns the queued events up to the batch limit. Rejects with the signal's reason. */
  async next(signal: AbortSignal): Promise<Batch> {
    while (this.#waiting.length === 0) await this.#arrival(signal);
    signal.throwIfAborted();
    let characters = 0;
    const full = this.#waiting.findIndex((event, index) => {
      characters += event.length;
      return index > 0 && characters > maxBatchCharacters;
    });
    const events = this.#waiting.splice(0, full < 0 ? this.#waiting.length : full);
    const dropped = this.#dropped;
    this.#dropped = 0;
    return { events, dropped };
  }

  async #arrival(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const abort = () => reject(signal.reason as Error);
    signal.addEventListener("abort", abort, { once: true });
    try {
      await promise;
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }
}

/** The JSON body of a post. */
export function bodyOf({ events, dropped }: Batch): string {
  return `{"dropped":${dropped},"events":[${events.join(",")}]}`;
}
