// What a service waits for before it has started, in words: for /startupz, the log and the supervisor of a local start.
import type { Logger } from "./logger.ts";

/** A new reason to wait: `subject` is what is missing, `reason` why. */
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

  /** True once `finish` was called. */
  get finished(): boolean {
    return this.#finished;
  }

  /** Why the service has not started yet, in one sentence; null once it has. */
  get reason(): string | null {
    if (this.#finished) return null;
    const waits = [...this.#waits].map(([subject, reason]) => `waiting for ${subject}: ${reason}`);
    return waits.length === 0 ? "starting" : waits.join("; ");
  }

  /** Where new reasons are logged from now on. */
  logTo(log: Logger): void {
    this.#log = log;
  }

  /** Notes that `subject` is still missing. A reason that was reported before is not reported again. */
  waiting(subject: string, reason: string): void {
    this.#waits.set(subject, reason);
    const reported = this.#reported.get(subject) ?? new Set();
    this.#reported.set(subject, reported);
    if (reported.has(reason)) return;
    reported.add(reason);
    this.#log?.warn({ subject, reason }, `start delayed: waiting for ${subject}`);
    this.#onWait({ subject, reason });
  }

  /** Notes that `subject` is there. */
  arrived(subject: string): void {
    this.#waits.delete(subject);
    if (this.#reported.delete(subject)) this.#log?.info({ subject }, `start continued: found ${subject}`);
  }

  /** The service has started; this never changes back. */
  finish(): void {
    this.#finished = true;
    this.#waits.clear();
  }
}
