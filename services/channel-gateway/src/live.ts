// The live view of sessions in this process: one bus subscription for each watched session, however many watch it. Events
// may be lost or come twice; who needs more than that repairs itself from the store, and is told here when to do so.
import type { Bus, Served } from "@parley/bus";
import { leaderChanged, sessionEvent, type SessionEvent } from "@parley/contracts";

export type LiveListener = (event: SessionEvent) => void;

/** `changed`: another leader, or the bus was away: everything in between may be lost. `tick`: it is time to look. */
export type RepairReason = "tick" | "changed";

export interface Watch {
  /** Idempotent. */
  close(): void;
}

interface Watched {
  subscription: Served;
  listeners: Set<LiveListener>;
  /** When the last listener left, on the monotonic clock; undefined while there is one. */
  idleSinceMs: number | undefined;
}

/** A subscription outlives its last listener for a while: the next message of the conversation finds it in place. */
const idleMs = 30_000;
/** Beyond this many idle subscriptions the oldest are closed early. */
const maxIdle = 2_000;
/** How often whoever waits for something looks whether it has missed it. */
const repairEveryMs = 2_000;

export class Live {
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

  /** Sessions that somebody watches right now. */
  get watched(): number {
    let count = 0;
    for (const each of this.#sessions.values()) if (each.listeners.size > 0) count++;
    return count;
  }

  /**
   * Hears a session's events from now on. The subscription is on its way before anything that is sent afterwards over
   * this bus: what a later request brings about is heard.
   */
  watch(sessionId: string, listener: LiveListener): Watch {
    const watched = this.#sessions.get(sessionId) ?? this.#subscribe(sessionId);
    watched.listeners.add(listener);
    watched.idleSinceMs = undefined;
    return {
      close: () => {
        if (watched.listeners.delete(listener) && watched.listeners.size === 0) {
          watched.idleSinceMs = performance.now();
          // Insertion order is the order of leaving, for those who are idle.
          if (this.#sessions.delete(sessionId)) this.#sessions.set(sessionId, watched);
        }
      },
    };
  }

  /** Calls back when events may have been lost: every two seconds, and when another leader took over. */
  onRepair(callback: (reason: RepairReason) => void): Watch {
    this.#repairs.add(callback);
    return { close: () => this.#repairs.delete(callback) };
  }

  /** Something was changed that no event tells of: whoever waits shall look now. */
  look(): void {
    this.#repair("tick");
  }

  close(): void {
    clearInterval(this.#ticker);
    this.#leader.close();
    for (const each of this.#sessions.values()) each.subscription.close();
    this.#sessions.clear();
  }

  #subscribe(sessionId: string): Watched {
    const listeners = new Set<LiveListener>();
    const subscription = this.#bus.subscribe(sessionEvent, { session: sessionId }, (event) => {
      for (const listener of listeners) listener(event);
    });
    const watched: Watched = { subscription, listeners, idleSinceMs: undefined };
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
