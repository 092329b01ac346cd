// Calls without which a connection cannot go on: they are repeated, with pauses, while the platform does not work.
import { setTimeout as delay } from "node:timers/promises";
import { backoffMs } from "@parley/kit";
import type { ChannelHost } from "./channel.ts";
import type { Answer } from "./json-api.ts";
import { resultOf } from "./outcome.ts";

const pauses = { firstMs: 250, maxMs: 30_000 };

export class ConnectionCalls {
  readonly #platform: string;
  readonly #host: Pick<ChannelHost, "report" | "log">;
  readonly #signal: AbortSignal;
  #failures = 0;

  constructor(platform: string, host: Pick<ChannelHost, "report" | "log">, signal: AbortSignal) {
    this.#platform = platform;
    this.#host = host;
    this.#signal = signal;
  }

  /** The result of a call, which is repeated until it succeeds; null when the connection ends before. Rejects like `settled`. */
  async succeeded<Result>(what: string, call: () => Promise<Answer<Result>>): Promise<Result | null> {
    while (!this.#signal.aborted) {
      const result = await this.settled(what, await call());
      if (result !== null) return result;
    }
    return null;
  }

  /**
   * The result, or null after the pause that the failure requires, at least `leastMs`. Rejects with AccountRejectedError when the platform
   * refuses the credentials. `what`: the name of the call, for the log.
   */
  async settled<Result>(what: string, answer: Answer<Result>, leastMs = 0): Promise<Result | null> {
    if (answer.kind === "ok") {
      this.#failures = 0;
      return answer.result;
    }
    if (this.#signal.aborted) return null;
    if (answer.kind === "refused" && answer.status === 401) resultOf(answer, this.#platform);
    this.#failures += 1;
    const { reason } = answer;
    const { status, retryAfterMs = null } = answer.kind === "refused" ? answer : {};
    this.#host.report({ state: "failing", reason: `${what}: ${reason}` });
    const waitMs = retryAfterMs ?? Math.max(leastMs, backoffMs(this.#failures, pauses));
    this.#host.log.warn({ waitMs, status, reason }, `${what} failed: retried later`);
    await delay(waitMs, undefined, { signal: this.#signal }).catch(() => undefined);
    return null;
  }
}
