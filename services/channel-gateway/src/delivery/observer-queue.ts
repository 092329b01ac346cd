// A bounded queue of events for one observer. Events beyond its capacity are dropped and counted, so a slow observer affects nothing
// else. Independent of the transport.
import type { SessionEvent } from "@parley/contracts";

export interface Batch {
  /** JSON texts of the events. */
  events: string[];
  /** Events dropped since the previous batch. */
  dropped: number;
}

/** The size limit of a batch; a single event may exceed it. */
const maxBatchCharacters = 1024 * 1024;

export class ObserverQueue {
  readonly #capacity: number;
  #queued: string[] = [];
  #dropped = 0;
  #wake: () => void = () => undefined;

  /** `capacity`: maximum number of queued events. */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Returns false when the queue is full. */
  push(sessionId: string, event: SessionEvent): boolean {
    if (this.#queued.length >= this.#capacity) {
      this.#dropped += 1;
      return false;
    }
    this.#queued.push(JSON.stringify({ session: sessionId, ...event }));
    this.#wake();
    return true;
  }

  /** Counts the events of a batch that could not be sent; the next batch reports them. */
  countAsDropped(batch: Batch): void {
    this.#dropped += batch.dropped + batch.events.length;
  }

  /** Waits for the first event, then returns the queued events up to the batch limit. Rejects with the signal's reason. */
  async next(signal: AbortSignal): Promise<Batch> {
    while (this.#queued.length === 0) await this.#waitForEvent(signal);
    signal.throwIfAborted();
    let characters = 0;
    const end = this.#queued.findIndex((event, index) => {
      characters += event.length;
      return index > 0 && characters > maxBatchCharacters;
    });
    const events = this.#queued.splice(0, end < 0 ? this.#queued.length : end);
    const dropped = this.#dropped;
    this.#dropped = 0;
    return { events, dropped };
  }

  async #waitForEvent(signal: AbortSignal): Promise<void> {
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

/** A batch as the JSON body of a request. */
export function formatBatch({ events, dropped }: Batch): string {
  return `{"dropped":${dropped},"events":[${events.join(",")}]}`;
}
