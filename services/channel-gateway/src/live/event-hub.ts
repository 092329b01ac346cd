// The live view of sessions in this process: one bus subscription per watched session, regardless of the number of watchers. Events
// may be lost or duplicated; repair callbacks signal when a listener must re-read the store.
import type { Bus, Served } from "@parley/bus";
import { leaderChanged, sessionEvent, type SessionEvent } from "@parley/contracts";

export type EventListener = (event: SessionEvent) => void;

/** `changed`: the leader changed or the bus reconnected, so events may be lost. `tick`: the periodic check. */
export type RepairReason = "tick" | "changed";

export interface Watch {
  /** Idempotent. */
  close(): void;
}

interface Watched {
  subscription: Served;
  listeners: Set<EventListener>;
  /** All events of a session that was expected before it existed, for listeners that join within `expectedMs`. */
  beginning: SessionEvent[] | undefined;
  /** When the last listener left, on the monotonic clock; undefined while there is one. */
  idleSinceMs: number | undefined;
}

/** The watch of a session that a request may create. */
export interface ExpectedSession extends Watch {
  /** The request has created it: its first events are kept for a short time from now on. */
  created(): void;
}

/** A subscription outlives its last listener, so that the next message of the conversation can reuse it. */
const idleMs = 30_000;
/** Beyond this many idle subscriptions the oldest are closed early. */
const maxIdle = 2_000;
/** How long the beginning of an expected session is kept after its creation, and how many of its events. */
const expectedMs = 2_000;
const maxBeginning = 1_000;
/** How often listeners check for lost events. */
const repairEveryMs = 2_000;

export class EventHub {
  readonly #bus: Bus;
  readonly #sessions = new Map<string, Watched>();
  readonly #repairs = new Set<(reason: RepairReason) => void>();
  readonly #leader: Served;
  readonly #ticker: NodeJS.Timeout;
  /** The bus was not connected at the last tick. */
  #away = false;

  constructor(bus: Bus) {
    this.#bus = bus;
    this.#leader = bus.subscribe(leaderChanged, {}, () => this.#repair("changed"));
    this.#ticker = setInterval(() => {
      this.#repair(this.#away && bus.connected ? "changed" : "tick");
      this.#away = !bus.connected;
      this.#forgetIdle();
    }, repairEveryMs);
    this.#ticker.unref();
  }

  /** The number of sessions with at least one listener. */
  get watched(): number {
    let count = 0;
    for (const each of this.#sessions.values()) if (each.listeners.size > 0) count++;
    return count;
  }

  /**
   * Subscribes to a session's events. The bus sends the subscription before any later request, so events caused by a later request are
   * received. `fromTheFirst`: with the events that an expected session already had, see `hasBeginning`.
   */
  watch(sessionId: string, listener: EventListener, fromTheFirst = false): Watch {
    const watched = this.#sessions.get(sessionId) ?? this.#subscribe(sessionId);
    if (fromTheFirst) for (const event of watched.beginning ?? []) listener(event);
    watched.listeners.add(listener);
    watched.idleSinceMs = undefined;
    return {
      close: () => {
        if (watched.listeners.delete(listener) && watched.listeners.size === 0) {
          watched.idleSinceMs = performance.now();
          // Idle entries are thereby ordered by the time their last listener left.
          if (this.#sessions.delete(sessionId)) this.#sessions.set(sessionId, watched);
        }
      },
    };
  }

  /**
   * Subscribes to a session that the caller's next request may create with this id, so that those who join after the reply receive its
   * live events from the first one. When the request ends, call `created`, or `close` when it has created no such session.
   */
  expect(sessionId: string): ExpectedSession {
    const watched = this.#subscribe(sessionId);
    watched.beginning = [];
    watched.idleSinceMs = performance.now();
    return {
      created: () => void setTimeout(() => (watched.beginning = undefined), expectedMs).unref(),
      close: () => {
        watched.subscription.close();
        this.#sessions.delete(sessionId);
      },
    };
  }

  /** A listener that joins now receives all events of the session. */
  hasBeginning(sessionId: string): boolean {
    return this.#sessions.get(sessionId)?.beginning !== undefined;
  }

  /** Calls back when events may have been lost: every 2 s, after a leader change, and after a reconnect of the bus. */
  onRepair(callback: (reason: RepairReason) => void): Watch {
    this.#repairs.add(callback);
    return { close: () => this.#repairs.delete(callback) };
  }

  /** Triggers a repair after a change that publishes no event. */
  refresh(): void {
    this.#repair("tick");
  }

  close(): void {
    clearInterval(this.#ticker);
    this.#leader.close();
    for (const each of this.#sessions.values()) each.subscription.close();
    this.#sessions.clear();
  }

  #subscribe(sessionId: string): Watched {
    const listeners = new Set<EventListener>();
    const subscription = this.#bus.subscribe(sessionEvent, { session: sessionId }, (event) => {
      if (watched.beginning !== undefined && watched.beginning.push(event) > maxBeginning)
        watched.beginning = undefined;
      for (const listener of listeners) listener(event);
    });
    const watched: Watched = { subscription, listeners, beginning: undefined, idleSinceMs: undefined };
    this.#sessions.set(sessionId, watched);
    return watched;
  }

  #repair(reason: RepairReason): void {
    for (const callback of this.#repairs) callback(reason);
  }

  #forgetIdle(): void {
    const idle = [...this.#sessions].filter(([, each]) => each.idleSinceMs !== undefined);
    const surplus = idle.length - maxIdle;
    const before = performance.now() - idleMs;
    for (const [index, [sessionId, each]] of idle.entries()) {
      if (index >= surplus && (each.idleSinceMs ?? 0) > before) continue;
      each.subscription.close();
      this.#sessions.delete(sessionId);
    }
  }
}
