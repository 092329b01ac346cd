// Reasons why a service has not started yet or cannot work, for the probes, the log and the local supervisor.

import type { Logger } from "./logger.ts";

/** A new reason to wait: `subject` is missing because of `reason`. */
export interface Wait {
  subject: string;
  reason: string;
}

export class Startup {
  #log: Logger | undefined;
  readonly #onWait: (wait: Wait) => void;
  readonly #waits = new Map<string, string>();
  readonly #reported = new Map<string, Set<string>>();
  #finished = false;

  /** `onWait` is called once for each new reason. */
  constructor(onWait: (wait: Wait) => void = () => undefined) {
    this.#onWait = onWait;
  }

  /** True after `finish`. */
  get finished(): boolean {
    return this.#finished;
  }

  /** Why the service has not started yet, in one sentence; null after it has. */
  get reason(): string | null {
    return this.#finished ? null : (this.waitingFor ?? "starting");
  }

  /** What is missing right now, before or after the start, in one sentence; null: nothing. */
  get waitingFor(): string | null {
    const waits = [...this.#waits].map(([subject, reason]) => `waiting for ${subject}: ${reason}`);
    return waits.length === 0 ? null : waits.join("; ");
  }

  /** Whether something is missing right now. */
  get isWaiting(): boolean {
    return this.#waits.size > 0;
  }

  /** Sets the log for new reasons. */
  logTo(log: Logger): void {
    this.#log = log;
  }

  /** Records that `subject` is still missing. A known reason is not reported again. */
  waiting(subject: string, reason: string): void {
    this.#waits.set(subject, reason);
    const reported = this.#reported.get(subject) ?? new Set();
    this.#reported.set(subject, reported);
    if (reported.has(reason)) return;
    reported.add(reason);
    this.#log?.warn(
      { waitingFor: subject, reason },
      `${this.#finished ? "work delayed" : "start delayed"}: waiting for ${subject}`,
    );
    this.#onWait({ subject, reason });
  }

  /** Records that `subject` is available. */
  arrived(subject: string): void {
    this.#waits.delete(subject);
    if (!this.#reported.delete(subject)) return;
    this.#log?.info(
      { waitingFor: subject },
      `${this.#finished ? "work continued" : "start continued"}: found ${subject}`,
    );
  }

  /** Records that the service has started, permanently. */
  finish(): void {
    this.#finished = true;
  }
}
