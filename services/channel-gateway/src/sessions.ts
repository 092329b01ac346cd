// Which session a route leads to, and how it wants its messages queued: asked once, remembered for a while, forgotten when the
// store says that it has changed. A session comes into being with its first message, so whoever watches one that does not exist
// yet waits here for it.
import type { Bus } from "@parley/bus";
import { sessionBound, sessionUpdated, store, type QueueMode, type SessionSummary } from "@parley/contracts";

/** Remembered keys; the oldest is forgotten first. */
const maxRemembered = 20_000;
/** A hint may be lost: nothing is believed longer than this. */
const maxAgeMs = 30_000;
/** How often a session that somebody waits for is asked for: its first message may come in on another replica. */
const appearPollMs = 1_000;

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Hears that a key leads to another session; what comes after `seq` in that one is news. */
type Moved = (sessionId: string, seq: number) => void;

interface Known {
  id: string;
  /** Null: as the settings say; undefined: not asked for yet. */
  queueMode: QueueMode | null | undefined;
  /** When it was asked for, on the monotonic clock. */
  askedAtMs: number;
}

export class Sessions {
  readonly #bus: Bus;
  readonly #known = new Map<string, Known>();
  readonly #waiting = new Map<string, Set<(id: string) => void>>();
  readonly #followers = new Map<string, Set<Moved>>();

  constructor(bus: Bus) {
    this.#bus = bus;
    bus.subscribe(sessionBound, {}, ({ route, sessionId, seq }) => this.#moved(route, sessionId, seq));
    bus.subscribe(sessionUpdated, {}, ({ sessionId }) => this.changed(sessionId));
  }

  /** The id of a key as far as it is remembered; it may be out of date. */
  remembered(key: string): string | undefined {
    return this.#fresh(key)?.id;
  }

  /** Told by whoever learns it from the store. */
  learn(key: string, id: string): void {
    for (const wake of this.#waiting.get(key) ?? []) wake(id);
    if (this.#known.get(key)?.id !== id) this.#remember(key, id, undefined);
  }

  /** What belongs to one session alone has changed. */
  changed(sessionId: string): void {
    for (const [key, known] of this.#known) if (known.id === sessionId) this.#known.delete(key);
  }

  /** What was changed for the session of a key; null: nothing was. */
  async queueModeOf(key: string): Promise<QueueMode | null> {
    const known = this.#fresh(key)?.queueMode;
    if (known !== undefined) return known;
    const session = await this.find(key);
    return session?.overrides.queueMode ?? null;
  }

  /** The session with this id, or that this key leads to; null when there is none (yet). */
  async find(idOrKey: string): Promise<SessionSummary | null> {
    const byId = uuidPattern.test(idOrKey);
    const { session } = await this.#bus.request(store.sessionGet, byId ? { sessionId: idOrKey } : { key: idOrKey });
    if (session !== null && !byId) this.take(idOrKey, session);
    return session;
  }

  /** What the store has said about the session that a key leads to. */
  take(key: string, session: SessionSummary): void {
    this.#remember(key, session.sessionId, session.overrides.queueMode ?? null);
    for (const wake of this.#waiting.get(key) ?? []) wake(session.sessionId);
  }

  /** Calls back when a key leads to another session, until it is closed. */
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

  #moved(route: string, sessionId: string, seq: number): void {
    // What the session wants is not known: the next message asks.
    if (this.#known.get(route)?.id !== sessionId) this.#known.delete(route);
    for (const wake of this.#waiting.get(route) ?? []) wake(sessionId);
    for (const moved of this.#followers.get(route) ?? []) moved(sessionId, seq);
  }

  #fresh(key: string): Known | undefined {
    const known = this.#known.get(key);
    return known !== undefined && performance.now() - known.askedAtMs < maxAgeMs ? known : undefined;
  }

  #remember(key: string, id: string, queueMode: QueueMode | null | undefined): void {
    // Set anew, so that the oldest stands first.
    this.#known.delete(key);
    if (this.#known.size >= maxRemembered) {
      const oldest = this.#known.keys().next();
      if (oldest.done !== true) this.#known.delete(oldest.value);
    }
    this.#known.set(key, { id, queueMode, askedAtMs: performance.now() });
  }
}
