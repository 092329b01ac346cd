// Write failures of the supervisor's state file and logs: they are reported once and retried, and stop nothing.
import { errorMessage } from "@parley/contracts";

import { isDiskFull } from "../errors.ts";
import type { LogSink } from "../servers/process.ts";

export class WriteTrouble {
  readonly #where: string;
  readonly #report: LogSink;
  readonly #failing = new Set<string>();

  /** `where` is the data folder; `report` receives one sentence at the first failure and one after recovery. */
  constructor(where: string, report: LogSink) {
    this.#where = where;
    this.#report = report;
  }

  /** Notes that `path` could not be written. */
  failed(path: string, error: unknown): void {
    const first = this.#failing.size === 0;
    this.#failing.add(path);
    if (!first) return;
    this.#report(
      isDiskFull(error)
        ? `disk full: ${path} cannot be written. Free some space on the disk of ${this.#where}; Parley continues and retries.`
        : `${path} cannot be written (${errorMessage(error)}); Parley continues and retries.`,
    );
  }

  /** Notes that `path` was written. */
  succeeded(path: string): void {
    if (this.#failing.delete(path) && this.#failing.size === 0) this.#report(`${path} is written again`);
  }
}
