// A connection that only one replica may own: runs the adapter while the lease is held, and stops as soon as the lease may be lost. Times
// are monotonic, measured from the START of the last successful renewal. lease-pool.ts acquires and renews.
//
//   standby ─→ held ─→ standby            lost (fenced, or not renewed in time), or moved to another replica
//              held ─→ released           drain: the connection closes first, then the lease is released
import { setTimeout as delay } from "node:timers/promises";
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { store, WireError } from "@parley/contracts";
import { AccountRejectedError, type LeaseRef } from "../channels/channel.ts";
import { ReconnectPauses } from "../channels/reconnect-pauses.ts";
import type { GatewayEvents } from "../events.ts";

/** How long a connection may take to close; after that the lease is left to expire. */
const closeMs = 3_000;
/** Timeout for the store's response to a release. */
const releaseMs = 1_000;

/** What a lease protects. */
export interface LeaseWork {
  /** `channel:account`, with `#slot` when the account has several. */
  name: string;
  /** The number of the connection, from 0. */
  slot: number;
  /** Holds the connection until it breaks or the lease ends. */
  connect(lease: LeaseRef): Promise<void>;
  onHeld?(): void;
  /** Called with the error of a failed connection; each new reason is logged. */
  failed(error: unknown): void;
  /** Called when this replica no longer owns the connection. */
  released(): void;
}

interface LeaseDeps {
  bus: Bus;
  log: Logger;
  events: GatewayEvents;
}

const giveUpReasons = ["draining", "moved", "removed"] as const;
type GiveUpReason = (typeof giveUpReasons)[number];
const isGiveUpReason = (text: string): text is GiveUpReason => giveUpReasons.some((reason) => reason === text);

class Held implements LeaseRef {
  readonly name: string;
  readonly slot: number;
  readonly fence: number;
  cursor: string | null;
  readonly #abort = new AbortController();
  #goodUntilMs = 0;
  #deadline: NodeJS.Timeout | undefined;

  constructor({ name, slot }: LeaseWork, fence: number, cursor: string | null) {
    this.name = name;
    this.slot = slot;
    this.fence = fence;
    this.cursor = cursor;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** False as soon as another replica could hold it, also right after a stall of the process, before any timer runs. */
  get isGood(): boolean {
    return !this.signal.aborted && performance.now() < this.#goodUntilMs;
  }

  extend(goodUntilMs: number): void {
    if (this.signal.aborted) return;
    clearTimeout(this.#deadline);
    this.#goodUntilMs = goodUntilMs;
    this.#deadline = setTimeout(() => this.lose("not renewed in time"), goodUntilMs - performance.now());
  }

  lose(reason: string): void {
    clearTimeout(this.#deadline);
    if (!this.signal.aborted) this.#abort.abort(new Error(reason));
  }
}

export class Lease {
  readonly name: string;
  readonly #deps: LeaseDeps;
  readonly #work: LeaseWork;
  #held: Held | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(deps: LeaseDeps, work: LeaseWork) {
    this.#deps = deps;
    this.#work = work;
    this.name = work.name;
  }

  /** The lease while it is certainly held; otherwise null. */
  get held(): LeaseRef | null {
    return this.#held?.isGood === true ? this.#held : null;
  }

  /** Held, or its connection has not closed yet. */
  get isBusy(): boolean {
    return this.#held !== null;
  }

  /** The store answered a request with FENCED: the lease belongs to another replica. */
  fenced(lease: LeaseRef): void {
    if (this.#held === lease) this.#held.lose("fenced");
  }

  /** Records the cursor that was saved with a message. */
  advance(lease: LeaseRef, cursor: string): void {
    if (this.#held === lease) this.#held.cursor = cursor;
  }

  /** Starts the work: the store granted the lease until `goodUntilMs`. */
  grant(fence: number, cursor: string | null, goodUntilMs: number): void {
    const held = new Held(this.#work, fence, cursor);
    this.#held = held;
    held.extend(goodUntilMs);
    this.#running = this.#hold(held);
  }

  /** The store extended the lease until `goodUntilMs`. */
  renew(lease: LeaseRef, goodUntilMs: number): void {
    if (this.#held === lease) this.#held.extend(goodUntilMs);
  }

  /** Loses the lease if it can no longer be renewed in time. */
  check(): void {
    if (this.#held?.isGood === false) this.#held.lose("not renewed in time");
  }

  /** Closes the connection, then releases the lease. `moved`: to another replica; `removed`: with its account. */
  async giveUp(reason: GiveUpReason): Promise<void> {
    this.#held?.lose(reason);
    await this.#running;
  }

  async #hold(lease: Held): Promise<void> {
    this.#deps.events.leaseAcquired(this.name, lease.fence);
    this.#work.onHeld?.();
    const connected = this.#keepConnected(lease);
    if (!lease.signal.aborted) {
      await new Promise((resolve) => lease.signal.addEventListener("abort", resolve, { once: true }));
    }
    const closed = await Promise.race([connected.then(() => true), delay(closeMs, false, { ref: false })]);
    this.#work.released();
    this.#notifyListeners(lease);
    // A connection that may still be open keeps its lease until the lease expires.
    if (closed) await this.#release(lease);
    else this.#deps.log.error({ lease: this.name }, "connection not closed in time: its lease expires by itself");
    this.#held = null;
  }

  /** Runs the adapter repeatedly while the lease is held, with backoff. */
  async #keepConnected(lease: Held): Promise<void> {
    const pauses = new ReconnectPauses();
    while (!lease.signal.aborted) {
      const startedMs = performance.now();
      let isRefused = false;
      try {
        await this.#work.connect(lease);
      } catch (error) {
        if (WireError.is(error, "FENCED")) lease.lose("fenced");
        else if (!lease.signal.aborted) this.#work.failed(error);
        isRefused = error instanceof AccountRejectedError;
      }
      if (lease.signal.aborted) return;
      const pauseMs = pauses.after(performance.now() - startedMs, isRefused);
      await delay(pauseMs * (0.75 + Math.random() / 2), undefined, { signal: lease.signal }).catch(() => undefined);
    }
  }

  #notifyListeners(lease: Held): void {
    const { reason } = lease.signal as { reason: unknown };
    const text = reason instanceof Error ? reason.message : "unknown";
    if (isGiveUpReason(text)) this.#deps.events.leaseReleased(this.name);
    else this.#deps.events.leaseLost(this.name, text);
  }

  async #release(lease: Held): Promise<void> {
    // The fence makes this harmless when another replica holds the lease by now.
    await this.#deps.bus
      .request(store.leaseRelease, { name: this.name, fence: lease.fence }, { timeoutMs: releaseMs })
      .catch(() => undefined);
  }
}
