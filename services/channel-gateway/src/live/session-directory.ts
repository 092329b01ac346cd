// Caches the session and the queue mode of each route. Entries expire, and the store's change events invalidate them. A session is
// created by its first message, so a watcher of a session that does not exist yet waits here.
import type { Bus } from "@parley/bus";
import { sessionBound, sessionUpdated, store, type QueueMode, type SessionSummary } from "@parley/contracts";

/** The cache size; the oldest entry is evicted first. */
const maxRemembered = 20_000;
/** Change events may be lost, so entries expire. */
const maxAgeMs = 30_000;
/** How often a missing session is polled: its first message may arrive at another replica. */
const appearPollMs = 1_000;

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Called when a key is bound to another session; events after `seq` in that session are new. */
type Moved = (sessionId: string, seq: number) => void;

interface Known {
  id: string;
  /** Null: the configured mode; undefined: not loaded yet. */
  queueMode: QueueMode | null | undefined;
  /** When the entry was loaded, on the monotonic clock. */
  askedAtMs: number;
}

export class SessionDirectory {
  readonly #bus: Bus;
  readonly #known = new Map<string, Known>();
  readonly #waiting = new Map<string, Set<(id: string) => void>>();
  readonly #followers = new Map<string, Set<Moved>>();

  constructor(bus: Bus) {
    this.#bus = bus;
    bus.subscribe(sessionBound, {}, ({ route, sessionId, seq }) => this.#moved(route, sessionId, seq));
    bus.subscribe(sessionUpdated, {}, ({ sessionId }) => this.changed(sessionId));
  }

  /** The cached session id of a key; it may be stale. */
  remembered(key: string): string | undefined {
    return this.#fresh(key)?.id;
  }

  /** Records the session id of a key after a response of the store. */
  remember(key: string, id: string): void {
    for (const wake of this.#waiting.get(key) ?? []) wake(id);
    if (this.#known.get(key)?.id !== id) this.#remember(key, id, undefined);
  }

  /** Invalidates a session after a change of its overrides. */
  changed(sessionId: string): void {
    for (const [key, known] of this.#known) if (known.id === sessionId) this.#known.delete(key);
  }

  /** The queue mode override of a key's session; null: none. */
  async queueModeOf(key: string): Promise<QueueMode | null> {
    const known = this.#fresh(key)?.queueMode;
    if (known !== undefined) return known;
    const session = await this.find(key);
    return session?.overrides.queueMode ?? null;
  }

  /** Returns the session with this id or key; null when there is none (yet). */
  async find(idOrKey: string): Promise<SessionSummary | null> {
    // PostgreSQL stores no NUL and refuses the query.
    if (idOrKey.includes("\0")) return null;
    const byId = uuidPattern.test(idOrKey);
    const { session } = await this.#bus.request(store.sessionGet, byId ? { sessionId: idOrKey } : { key: idOrKey });
    if (session !== null && !byId) this.take(idOrKey, session);
    return session;
  }

  /** Records the session that the store returned for a key. */
  take(key: string, session: SessionSummary): void {
    this.#remember(key, session.sessionId, session.overrides.queueMode ?? null);
    for (const wake of this.#waiting.get(key) ?? []) wake(session.sessionId);
  }

  /** Calls back when a key is bound to another session, until closed. */
  follow(key: string, moved: Moved): { close(): void } {
    const followers = this.#followers.get(key) ?? new Set();
    this.#followers.set(key, followers);
    followers.add(moved);
    return {
      close: () => {
        followers.delete(moved);
        if (followers.size === 0) this.#followers.delete(key);
      },
    };
  }

  /** Resolves with the id of a key as soon as the session exists. Rejects when the signal aborts. */
  async appears(key: string, signal: AbortSignal): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    // The promise may be rejected before it is awaited.
    promise.catch(() => undefined);
    const waiting = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, waiting);
    waiting.add(resolve);
    const poll = setInterval(() => {
      // An unavailable store is polled again at the next tick.
      this.find(key).catch(() => undefined);
    }, appearPollMs);
    const abort = () => reject(signal.reason instanceof Error ? signal.reason : new Error("aborted"));
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    try {
      // `find` resolves every waiting caller.
      await this.find(key).catch(() => undefined);
      return await promise;
    } finally {
      clearInterval(poll);
      signal.removeEventListener("abort", abort);
      waiting.delete(resolve);
      if (waiting.size === 0) this.#waiting.delete(key);
    }
  }

  #moved(route: string, sessionId: string, seq: number): void {
    // The queue mode of the new session is unknown; the next message loads it.
    if (this.#known.get(route)?.id !== sessionId) this.#known.delete(route);
    for (const wake of this.#waiting.get(route) ?? []) wake(sessionId);
    for (const moved of this.#followers.get(route) ?? []) moved(sessionId, seq);
  }

  #fresh(key: string): Known | undefined {
    const known = this.#known.get(key);
    return known !== undefined && performance.now() - known.askedAtMs < maxAgeMs ? known : undefined;
  }

  #remember(key: string, id: string, queueMode: QueueMode | null | undefined): void {
    // Delete before set, so that the insertion order is the age order.
    this.#known.delete(key);
    if (this.#known.size >= maxRemembered) {
      const oldest = this.#known.keys().next();
      if (oldest.done !== true) this.#known.delete(oldest.value);
    }
    this.#known.set(key, { id, queueMode, askedAtMs: performance.now() });
  }
}
