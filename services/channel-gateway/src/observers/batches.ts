// Events on their way to an observer: a line with a fixed number of places. What finds no place is dropped and counted, so
// that whoever reads slowly costs nobody else anything. It does not know where the events go.
import type { SessionEvent } from "@parley/contracts";

export interface Batch {
  /** Each a JSON object. */
  events: string[];
  /** Events that were dropped since the batch before. */
  dropped: number;
}

/** A batch ends where it would grow beyond this; one event alone may be bigger. */
const maxBatchCharacters = 1024 * 1024;

export class Batches {
  readonly #places: number;
  #waiting: string[] = [];
  #dropped = 0;
  #wake: () => void = () => undefined;

  /** Keeps `places` events. */
  constructor(places: number) {
    this.#places = places;
  }

  /** False when there was no place. */
  push(sessionId: string, event: SessionEvent): boolean {
    if (this.#waiting.length >= this.#places) {
      this.#dropped += 1;
      return false;
    }
    this.#waiting.push(JSON.stringify({ session: sessionId, ...event }));
    this.#wake();
    return true;
  }

  /** What a post that failed had with it is dropped as well: the next batch says so. */
  lost(batch: Batch): void {
    this.#dropped += batch.dropped + batch.events.length;
  }

  /** Everything that waits, up to a megabyte; waits for the first event. Rejects with the signal's reason. */
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

/** The JSON text that is posted. */
export function bodyOf({ events, dropped }: Batch): string {
  return `{"dropped":${dropped},"events":[${events.join(",")}]}`;
}
