// Manages a connection that only one replica may own: acquires the lease, runs the adapter while it is held, and stops as soon as the
// lease may be lost. Times are monotonic, measured from the START of the last successful renewal.
//
//   standby ─→ held ─→ standby            lost (fenced, or not renewed in time) or released
//              held ─→ released           drain: the connection closes first, then the lease is released
import { setTimeout as delay } from "node:timers/promises";
import type { Bus, Served } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { leaseReleased, store, WireError } from "@parley/contracts";
import { AccountRejectedError, type ChannelAdapter, type LeaseRef } from "../channels/channel.ts";
import type { GatewayEvents } from "../events.ts";

const leaseTimes = {
  ttlMs: 4_000,
  renewEveryMs: 1_300,
  /** The replica stops this long before the store would grant the lease to another one. */
  marginMs: 1_000,
  pollMs: 500,
  /** Timeout for a response of the store. */
  answerMs: 1_000,
} as const;

/** Pauses between failed connections, doubled from `first` up to `last`. */
const backoffMs = { first: 250, last: 15_000 };
/** Pause after the platform has refused the credentials. */
const refusedPauseMs = 5 * 60_000;
/** After a connection of at least this duration the backoff starts again from `first`. */
const goodConnectionMs = 30_000;
/** How long a connection may take to close; after that the lease is left to expire. */
const closeMs = 3_000;
/** Delay per held lease, so that replicas with fewer connections acquire first. */
const acquireJitterMs = 100;

export interface LeaseDeps {
  bus: Bus;
  log: Logger;
  events: GatewayEvents;
  /** Identifies this process instance. */
  owner: string;
  /** How many leases this replica holds. */
  heldCount(): number;
  /** Called with the error of a failed connection; each new reason is logged. */
  failed(error: unknown): void;
  /** Called when this replica no longer owns the connection. */
  released(): void;
}

class Held implements LeaseRef {
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
  readonly #connect: (lease: LeaseRef) => Promise<void>;
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
    connect: (lease: LeaseRef) => Promise<void>,
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

  /** The lease while it is certainly held; otherwise null. */
  get held(): LeaseRef | null {
    return this.#held !== null && !this.#held.signal.aborted ? this.#held : null;
  }

  /** The store answered a request with FENCED: the lease belongs to another replica. */
  fenced(lease: LeaseRef): void {
    if (this.#held === lease) this.#held.lose("fenced");
  }

  /** Records the cursor that was saved with a message. */
  advance(lease: LeaseRef, cursor: string): void {
    if (this.#held === lease) this.#held.cursor = cursor;
  }

  /** Closes the connection, then releases the lease. */
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
    await this.#pause(Math.min(3, this.#deps.heldCount()) * acquireJitterMs);
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
      // The store is unavailable; retried after the pause.
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
    // A connection that may still be open keeps its lease until the lease expires.
    if (closed) await this.#release(lease);
    else this.#deps.log.error({ lease: this.name }, "connection not closed in time: its lease expires by itself");
  }

  /** Runs the adapter repeatedly while the lease is held, with backoff. */
  async #keepConnected(lease: Held): Promise<void> {
    let pauseMs = backoffMs.first;
    while (!lease.signal.aborted) {
      const startedMs = performance.now();
      try {
        await this.#connect(lease);
      } catch (error) {
        if (WireError.is(error, "FENCED")) lease.lose("fenced");
        else if (!lease.signal.aborted) this.#deps.failed(error);
        if (error instanceof AccountRejectedError) pauseMs = refusedPauseMs;
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
      // After a stall of the process this check runs before any timer.
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
    // The fence makes this harmless when another replica holds the lease by now.
    await this.#deps.bus
      .request(store.leaseRelease, { name: this.name, fence: lease.fence }, { timeoutMs: leaseTimes.answerMs })
      .catch(() => undefined);
  }

  /** Waits for `ms`, or until a hint arrives. */
  async #pause(ms: number): Promise<void> {
    if (ms <= 0 || this.#stop.signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = setTimeout(resolve, ms);
    await promise;
    clearTimeout(timer);
  }
}
