// Finds texts whose hint was lost: one request of this replica for all its accounts.
import { setTimeout as delay } from "node:timers/promises";
import type { Bus } from "@parley/bus";
import { store } from "@parley/contracts";

export const pollEveryMs = 2_000;

export class OutboxPoll {
  readonly #bus: Bus;
  /** What starts a claim, by account. */
  readonly #wakes = new Map<string, () => void>();
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  /** `name`: `channel:account`. */
  add(name: string, wake: () => void): void {
    this.#wakes.set(name, wake);
  }

  remove(name: string): void {
    this.#wakes.delete(name);
  }

  open(): void {
    this.#running = this.#run();
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error("draining"));
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await delay(pollEveryMs, undefined, { signal, ref: false }).catch(() => undefined);
      const accounts = [...this.#wakes.keys()];
      if (signal.aborted || accounts.length === 0) continue;
      const options = { signal, timeoutMs: pollEveryMs };
      // A store of the version before does not know the request: then every account claims.
      const open = await this.#bus.request(store.outboxOpen, { accounts }, options).catch(() => ({ accounts }));
      for (const name of open.accounts) this.#wakes.get(name)?.();
    }
  }
}
