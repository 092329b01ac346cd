// Owns a connection that must have one owner: takes the lease, runs the adapter while it is held, lets go at once when it may no
// longer be ours. Time is the monotonic clock's, from the START of the last good renewal.
//
//   standby ─→ held ─→ standby            lost (fenced, or not renewed in time) or given up
//              held ─→ released           drain: the connection closes first, then the lease is free
import { setTimeout as delay } from "node:timers/promises";
import type { Bus, Served } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { leaseReleased, store, WireError } from "@parley/contracts";
import { AccountRefused, type ChannelAdapter, type HeldLease } from "./channel.ts";
import type { GatewayEvents } from "./events.ts";

const leaseTimes = {
  ttlMs: 4_000,
  renewEveryMs: 1_300,
  /** We stop this long before the store would give the lease to somebody else. */
  marginMs: 1_000,
  pollMs: 500,
  /** How long the store may take to answer. */
  answerMs: 1_000,
} as const;

/** Pauses between connections that break: doubled from the first to the last. */
const backoffMs = { first: 250, last: 15_000 };
/** After the platform has refused the credentials. */
const refusedPauseMs = 5 * 60_000;
/** A connection that held this long was good: the next pause is the first one again. */
const goodConnectionMs = 30_000;
/** How long a closing connection may take before its lease is given up all the same. */
const closeMs = 3_000;
/** Who already owns connections lets others go first. */
const politenessMs = 100;

export interface LeaseDeps {
  bus: Bus;
  log: Logger;
  events: GatewayEvents;
  /** This life of this replica. */
  owner: string;
  /** How many leases this replica holds. */
  heldCount(): number;
  /** Gets why a connection failed; it logs each new reason. */
  failed(error: unknown): void;
  /** Called when this replica owns the connection no longer. */
  released(): void;
}

class Held implements HeldLease {
  readonly name: string;
  readonly fence: number;
  cursor: string | null;
  readonly #abort = new AbortController();

  constructor(name: string, fence: number, cursor: string | null) {
    this.name = name;
    this.fence = fence;
    this.cursor = cursor;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  lose(reason: string): void {
    if (!this.signal.aborted) this.#abort.abort(new Error(reason));
  }
}

export class Lease {
  readonly name: string;
  readonly #deps: LeaseDeps;
  readonly #connect: (lease: HeldLease) => Promise<void>;
  readonly #onHeld: () => void;
  readonly #stop = new AbortController();
  readonly #hint: Served;
  readonly #running: Promise<void>;
  #held: Held | null = null;
  #wake: () => void = () => undefined;

  /** `connect` holds the connection until it breaks or the lease ends. */
  constructor(
    deps: LeaseDeps,
    adapter: Pick<ChannelAdapter, "channel" | "account">,
    connect: (lease: HeldLease) => Promise<void>,
    onHeld: () => void = () => undefined,
  ) {
    this.#deps = deps;
    this.#connect = connect;
    this.#onHeld = onHeld;
    this.name = `${adapter.channel}:${adapter.account}`;
    this.#hint = deps.bus.subscribe(leaseReleased, {}, ({ name }) => {
      if (name === this.name) this.#wake();
    });
    this.#running = this.#run();
  }

  /** The lease while it is surely ours. */
  get held(): HeldLease | null {
    return this.#held !== null && !this.#held.signal.aborted ? this.#held : null;
  }

  /** Somebody was told by the store that this lease is no longer ours. */
  fenced(lease: HeldLease): void {
    if (this.#held === lease) this.#held.lose("fenced");
  }

  /** The cursor that was saved with a message. */
  advance(lease: HeldLease, cursor: string): void {
    if (this.#held === lease) this.#held.cursor = cursor;
  }

  /** Closes the connection, then gives the lease up. */
  async close(): Promise<void> {
    this.#hint.close();
    this.#stop.abort(new Error("draining"));
    this.#wake();
    await this.#running;
  }

  async #run(): Promise<void> {
    const stop = this.#stop.signal;
    while (!stop.aborted) {
      const held = await this.#acquire();
      if (held !== null) await this.#hold(held.lease, held.sinceMs);
      else await this.#pause(leaseTimes.pollMs);
    }
  }

  async #acquire(): Promise<{ lease: Held; sinceMs: number } | null> {
    const stop = this.#stop.signal;
    await this.#pause(Math.min(3, this.#deps.heldCount()) * politenessMs);
    if (stop.aborted) return null;
    const sinceMs = performance.now();
    try {
      const answer = await this.#deps.bus.request(
        store.leaseAcquire,
        { name: this.name, owner: this.#deps.owner, ttlMs: leaseTimes.ttlMs },
        { timeoutMs: leaseTimes.answerMs, signal: stop },
      );
      if (!answer.granted) return null;
      return { lease: new Held(this.name, answer.fence, answer.cursor), sinceMs };
    } catch {
      // The store is away; asked again after the pause.
      return null;
    }
  }

  async #hold(lease: Held, sinceMs: number): Promise<void> {
    this.#held = lease;
    this.#deps.events.leaseTaken(this.name, lease.fence);
    const giveUp = () => lease.lose("draining");
    const stop = this.#stop.signal;
    stop.addEventListener("abort", giveUp, { once: true });
    if (stop.aborted) giveUp();
    this.#onHeld();
    const connected = this.#keepConnected(lease);
    await this.#renewUntilLost(lease, sinceMs);
    stop.removeEventListener("abort", giveUp);
    const closed = await Promise.race([connected.then(() => true), delay(closeMs, false, { ref: false })]);
    this.#held = null;
    this.#deps.released();
    this.#tell(lease);
    // One that may still be open keeps its lease until it runs out by itself.
    if (closed) await this.#release(lease);
    else this.#deps.log.error({ lease: this.name }, "connection did not close in time");
  }

  /** Runs the adapter again and again while the lease is held, with growing pauses. */
  async #keepConnected(lease: Held): Promise<void> {
    let pauseMs = backoffMs.first;
    while (!lease.signal.aborted) {
      const startedMs = performance.now();
      try {
        await this.#connect(lease);
      } catch (error) {
        if (WireError.is(error, "FENCED")) lease.lose("fenced");
        else if (!lease.signal.aborted) this.#deps.failed(error);
        if (error instanceof AccountRefused) pauseMs = refusedPauseMs;
      }
      if (lease.signal.aborted) return;
      if (performance.now() - startedMs > goodConnectionMs) pauseMs = backoffMs.first;
      await delay(pauseMs * (0.75 + Math.random() / 2), undefined, { signal: lease.signal }).catch(() => undefined);
      pauseMs = pauseMs === refusedPauseMs ? backoffMs.first : Math.min(pauseMs * 2, backoffMs.last);
    }
  }

  async #renewUntilLost(lease: Held, sinceMs: number): Promise<void> {
    const holdMs = leaseTimes.ttlMs - leaseTimes.marginMs;
    let goodUntilMs = sinceMs + holdMs;
    const armDeadline = () => setTimeout(() => lease.lose("not renewed in time"), goodUntilMs - performance.now());
    let deadline = armDeadline();
    while (!lease.signal.aborted) {
      await delay(leaseTimes.renewEveryMs, undefined, { signal: lease.signal }).catch(() => undefined);
      if (lease.signal.aborted) break;
      const startedMs = performance.now();
      // After a standstill of the process this comes before any timer had its turn.
      if (startedMs >= goodUntilMs) {
        lease.lose("not renewed in time");
        break;
      }
      try {
        await this.#deps.bus.request(
          store.leaseRenew,
          { name: this.name, fence: lease.fence, ttlMs: leaseTimes.ttlMs },
          { timeoutMs: goodUntilMs - startedMs, attemptMs: leaseTimes.renewEveryMs, signal: lease.signal },
        );
        goodUntilMs = startedMs + holdMs;
        clearTimeout(deadline);
        deadline = armDeadline();
      } catch (error) {
        if (WireError.is(error, "FENCED", "NOT_FOUND")) lease.lose("fenced");
        // Anything else: the deadline decides.
      }
    }
    clearTimeout(deadline);
  }

  #tell(lease: Held): void {
    if (this.#stop.signal.aborted) this.#deps.events.leaseReleased(this.name);
    else {
      const { reason } = lease.signal as { reason: unknown };
      this.#deps.events.leaseLost(this.name, reason instanceof Error ? reason.message : "unknown");
    }
  }

  async #release(lease: Held): Promise<void> {
    // The fence makes it harmless when the lease is somebody else's by now.
    await this.#deps.bus
      .request(store.leaseRelease, { name: this.name, fence: lease.fence }, { timeoutMs: leaseTimes.answerMs })
      .catch(() => undefined);
  }

  /** Waits, but not longer than until a hint. */
  async #pause(ms: number): Promise<void> {
    if (ms <= 0 || this.#stop.signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = setTimeout(resolve, ms);
    await promise;
    clearTimeout(timer);
  }
}
