// Which id a session key has: asked once, remembered while it holds. A session comes into being with its first message, so
// whoever watches one that does not exist yet waits here for it.
import type { Bus } from "@parley/bus";
import { store, type SessionSummary } from "@parley/contracts";

/** Remembered keys; the oldest is forgotten first. */
const maxRemembered = 20_000;
/** How often a session that somebody waits for is asked for: its first message may come in on another replica. */
const appearPollMs = 1_000;

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export class Sessions {
  readonly #bus: Bus;
  readonly #idOfKey = new Map<string, string>();
  readonly #waiting = new Map<string, Set<(id: string) => void>>();

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  /** The id of a key as far as it is remembered; it may be out of date. */
  remembered(key: string): string | undefined {
    return this.#idOfKey.get(key);
  }

  /** Told by whoever learns it from the store. */
  learn(key: string, id: string): void {
    for (const wake of this.#waiting.get(key) ?? []) wake(id);
    if (this.#idOfKey.get(key) === id) return;
    if (this.#idOfKey.size >= maxRemembered) {
      const oldest = this.#idOfKey.keys().next();
      if (oldest.done !== true) this.#idOfKey.delete(oldest.value);
    }
    this.#idOfKey.set(key, id);
  }

  /** The session with this id or key; null when there is none (yet). */
  async find(idOrKey: string): Promise<SessionSummary | null> {
    const by = uuidPattern.test(idOrKey) ? { sessionId: idOrKey } : { key: idOrKey };
    const { session } = await this.#bus.request(store.sessionGet, by);
    if (session !== null) this.learn(session.key, session.sessionId);
    return session;
  }

  /** Resolves with the id of a key as soon as the session exists. Rejects when the signal aborts. */
  async appears(key: string, signal: AbortSignal): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    // It may be rejected while nobody awaits it yet.
    promise.catch(() => undefined);
    const waiting = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, waiting);
    waiting.add(resolve);
    const poll = setInterval(() => {
      // A store that is away right now is asked again at the next tick.
      this.find(key).catch(() => undefined);
    }, appearPollMs);
    const abort = () => reject(signal.reason instanceof Error ? signal.reason : new Error("aborted"));
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    try {
      // What it finds, it announces to everybody who waits.
      await this.find(key).catch(() => undefined);
      return await promise;
    } finally {
      clearInterval(poll);
      signal.removeEventListener("abort", abort);
      waiting.delete(resolve);
      if (waiting.size === 0) this.#waiting.delete(key);
    }
  }
}
