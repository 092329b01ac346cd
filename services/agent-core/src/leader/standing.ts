// Whether this replica can do its part, for the probes and the log: it leads, or a leader has answered it. A replica that would lead but gets
// no lock from Redis or no epoch from the store is not ready, and waits.
import type { Startup } from "@parley/chassis";

export class Standing {
  readonly #startup: Pick<Startup, "waiting" | "arrived" | "waitingFor">;
  #settled = false;

  constructor(startup: Pick<Startup, "waiting" | "arrived" | "waitingFor">) {
    this.#startup = startup;
  }

  /** Why this replica is not ready, in one sentence; null: it is. */
  get problem(): string | null {
    return this.#startup.waitingFor ?? (this.#settled ? null : "waiting for a leader");
  }

  /** Records that the store has not given this replica an epoch. */
  noEpoch(reason: string): void {
    this.#startup.arrived("Redis");
    this.#startup.waiting("the store", `no replica can lead without it (${reason})`);
  }

  /** Records that Redis has refused the lock, or has not answered, while there is no leader. */
  noLock(reason: string): void {
    this.#startup.waiting("Redis", `no replica can lead without it (${reason})`);
  }

  /** Records that there is a leader, which proves that the servers work. */
  leaderFound(): void {
    this.#settled = true;
    this.#startup.arrived("Redis");
    this.#startup.arrived("the store");
  }
}
