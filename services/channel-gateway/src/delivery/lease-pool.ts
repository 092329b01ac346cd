// All leases of this replica: one request a second renews what it holds, acquires what it should hold, and reports that it is alive. Every
// replica computes the same placement from the answer, and hands over what belongs to another one, a quarter of it a second.
import type { Bus, Served } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { leaseReleased, store, type OutputOf } from "@parley/contracts";
import type { GatewayEvents } from "../events.ts";
import { Lease, type LeaseWork } from "./leases.ts";
import { placeLeases } from "./placement.ts";

const leaseTimes = {
  ttlMs: 4_000,
  /** The replica stops this long before the store would grant the lease to another one. */
  marginMs: 1_000,
  syncEveryMs: 1_000,
  /** Timeout for a response of the store. */
  answerMs: 1_000,
  /** Added to the time at which a lease of a lost replica expires. */
  expiryMs: 20,
} as const;

/** One of so many parts of the misplaced leases is handed over in a second. */
const movedParts = 4;

interface LeasePoolDeps {
  bus: Bus;
  log: Logger;
  events: GatewayEvents;
  /** Identifies this process instance. */
  owner: string;
}

type Synced = OutputOf<typeof store.leaseSync>;

export class LeasePool {
  readonly #deps: LeasePoolDeps;
  readonly #leases = new Map<string, Lease>();
  readonly #stop = new AbortController();
  #hint: Served | undefined;
  #running: Promise<void> = Promise.resolve();
  #members: { key: string; placed: Map<string, string> } = { key: "", placed: new Map() };
  /** The names that the last request tried to acquire. */
  #tried: ReadonlySet<string> = new Set();
  #movedAtMs = Number.NEGATIVE_INFINITY;
  #wake: () => void = () => undefined;
  #woken = false;

  constructor(deps: LeasePoolDeps) {
    this.#deps = deps;
  }

  /** The names of the leases that this replica holds. */
  get held(): string[] {
    return [...this.#leases.values()].filter((lease) => lease.held !== null).map(({ name }) => name);
  }

  /** Adds a connection. */
  add(work: LeaseWork): Lease {
    const lease = new Lease(this.#deps, work);
    this.#leases.set(work.name, lease);
    this.#hurry();
    return lease;
  }

  /** Closes a connection and releases its lease; it is not acquired again. */
  async remove(lease: Lease): Promise<void> {
    if (this.#leases.get(lease.name) === lease) this.#leases.delete(lease.name);
    this.#hurry();
    await lease.giveUp("removed");
  }

  /** Starts to acquire leases. */
  open(): void {
    this.#hint = this.#deps.bus.subscribe(leaseReleased, {}, ({ name }) => {
      // A hint of an account concerns all its connections.
      const released = [...this.#leases.values()].filter(
        (lease) => lease.name === name || lease.name.startsWith(`${name}#`),
      );
      if (released.some((lease) => !lease.isBusy)) this.#hurry();
    });
    this.#running = this.#run();
  }

  /** Closes all connections and releases their leases. */
  async close(): Promise<void> {
    this.#hint?.close();
    this.#stop.abort(new Error("draining"));
    this.#hurry();
    await this.#running;
    // The other replicas no longer count on this one when the hints of the releases reach them.
    const leave = { owner: this.#deps.owner, ttlMs: leaseTimes.ttlMs, names: [], held: [], acquire: [] };
    if (this.#leases.size > 0)
      await this.#deps.bus.request(store.leaseSync, leave, { timeoutMs: leaseTimes.answerMs }).catch(() => undefined);
    await Promise.all([...this.#leases.values()].map((lease) => lease.giveUp("draining")));
  }

  async #run(): Promise<void> {
    let isMember = false;
    while (!this.#stop.signal.aborted) {
      const startedMs = performance.now();
      this.#woken = false;
      // A replica without connections leaves the others with its last request.
      const isIdle = this.#leases.size === 0 && !isMember;
      isMember = this.#leases.size > 0;
      const waitMs = isIdle ? Number.POSITIVE_INFINITY : await this.#sync(startedMs);
      await this.#pause(startedMs + waitMs - performance.now());
    }
  }

  /** One request. Returns the time until the next one, from the start of this one. */
  async #sync(startedMs: number): Promise<number> {
    const { bus, owner } = this.#deps;
    const leases = [...this.#leases.values()];
    for (const lease of leases) lease.check();
    const held = leases.flatMap((lease) => (lease.held === null ? [] : [{ lease, ref: lease.held }]));
    const acquire = leases.filter((lease) => !lease.isBusy && this.#belongsHere(lease)).map(({ name }) => name);
    this.#tried = new Set(acquire);
    const request = {
      owner,
      ttlMs: leaseTimes.ttlMs,
      names: leases.map(({ name }) => name),
      held: held.map(({ ref: { name, fence } }) => ({ name, fence })),
      acquire,
    };
    let synced: Synced;
    try {
      synced = await bus.request(store.leaseSync, request, {
        timeoutMs: leaseTimes.answerMs,
        // Each execution that grants a lease raises its fence, so an overlapping one would end what the other has granted.
        ...(acquire.length === 0 ? {} : { attemptMs: leaseTimes.answerMs }),
        signal: this.#stop.signal,
      });
    } catch {
      // The store is unavailable: leases that are not renewed in time are lost.
      return leaseTimes.syncEveryMs;
    }
    const goodUntilMs = startedMs + leaseTimes.ttlMs - leaseTimes.marginMs;
    const renewed = new Set(synced.renewed);
    for (const { lease, ref } of held) {
      if (renewed.has(ref.name)) lease.renew(ref, goodUntilMs);
      else lease.fenced(ref);
    }
    for (const { name, fence, cursor } of synced.granted) this.#leases.get(name)?.grant(fence, cursor, goodUntilMs);
    this.#place(synced.members);
    this.#moveSome();
    return this.#nextMs(synced);
  }

  #belongsHere({ name }: Lease): boolean {
    return this.#members.placed.get(name) === this.#deps.owner;
  }

  #place(members: Synced["members"]): void {
    const key = JSON.stringify(members);
    if (key !== this.#members.key) this.#members = { key, placed: placeLeases(members) };
  }

  /** Hands over a part of what belongs to other replicas: most connections stay open, and any number moves within seconds. */
  #moveSome(): void {
    if (performance.now() - this.#movedAtMs < leaseTimes.syncEveryMs) return;
    const misplaced = [...this.#leases.values()].filter((lease) => lease.held !== null && !this.#belongsHere(lease));
    if (misplaced.length === 0) return;
    this.#movedAtMs = performance.now();
    for (const lease of misplaced.slice(0, Math.ceil(misplaced.length / movedParts))) void lease.giveUp("moved");
  }

  #nextMs({ expiresInMs }: Synced): number {
    const isNew = (lease: Lease) => !lease.isBusy && this.#belongsHere(lease) && !this.#tried.has(lease.name);
    if ([...this.#leases.values()].some(isNew)) return 0;
    // Nobody renews a lease that expires before the next request: its owner is gone.
    return expiresInMs === null
      ? leaseTimes.syncEveryMs
      : Math.min(leaseTimes.syncEveryMs, expiresInMs + leaseTimes.expiryMs);
  }

  #hurry(): void {
    this.#woken = true;
    this.#wake();
  }

  /** Waits for `ms` (infinite: for ever), or until a hint arrives. */
  async #pause(ms: number): Promise<void> {
    if (ms <= 0 || this.#woken || this.#stop.signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = ms === Number.POSITIVE_INFINITY ? undefined : setTimeout(resolve, ms);
    await promise;
    clearTimeout(timer);
  }
}
