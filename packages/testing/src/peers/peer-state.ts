// What the states of all fakes share: faults of the next calls, and waits for changes.
import { untilValue } from "../until.ts";

export class PeerState<Fault, Operation extends string = string> {
  readonly #platform: string;
  readonly #faults: { operation: Operation; fault: Fault }[] = [];
  readonly #watchers = new Set<() => void>();

  /** `platform`: its name in the errors of waits. */
  constructor(platform: string) {
    this.#platform = platform;
  }

  /** Queues a fault for the next call of `operation`; `*`: any. */
  addFault(operation: Operation, fault: Fault): void {
    this.#faults.push({ operation, fault });
  }

  /** Removes and returns the oldest fault for a call of `operation`; null without one. */
  takeFault(operation: Operation): Fault | null {
    const index = this.#faults.findIndex((queued) => queued.operation === operation || queued.operation === "*");
    return index === -1 ? null : (this.#faults.splice(index, 1)[0]?.fault ?? null);
  }

  /** Calls the watchers; to be called after each change. */
  changed(): void {
    for (const watcher of this.#watchers) watcher();
  }

  /** Calls `watcher` after each change until the returned function is called. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  /** Resolves once `done` returns a value other than null; rejects after one minute. */
  until<Value>(what: string, done: () => Value | null): Promise<Value> {
    return untilValue(
      done,
      (check) => this.watch(check),
      () => `${what} at the ${this.#platform} fake`,
    );
  }
}
