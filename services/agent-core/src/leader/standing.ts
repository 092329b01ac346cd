// Whether this replica can do its part, for the probes and the log: it leads, or a leader has answered it. A replica that would lead but gets
// no epoch from the store is not ready, and waits.
import type { Startup } from "@parley/chassis";

const subject = "the store";

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
    this.#startup.waiting(subject, `no replica can lead without it (${reason})`);
  }

  /** Records that there is a leader, which proves that the store works. */
  leaderFound(): void {
    this.#settled = true;
    this.#startup.arrived(subject);
  }
}
