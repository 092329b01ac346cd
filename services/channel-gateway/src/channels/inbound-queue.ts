// For platforms that never redeliver: passes messages to the gateway one at a time, and retries a message that could not be stored while the
// lease is held.
import { setTimeout as delay } from "node:timers/promises";
import type { LogFields } from "@parley/chassis";
import { errorMessage, WireError } from "@parley/contracts";
import { backoffMs } from "@parley/kit";
import type { ChannelHost, LeaseRef, InboundDraft } from "./channel.ts";
import { skipUnstorable } from "./parsed.ts";

/** Pauses before a message is passed again. */
const pauses = { firstMs: 100, maxMs: 5_000 };
/** The queue limit during a long outage of the store; newer messages are then dropped with an error log. */
const mostWaiting = 10_000;

export class InboundQueue {
  /** Rejects when the lease was lost. */
  readonly fenced: Promise<never>;
  readonly #host: ChannelHost;
  readonly #lease: LeaseRef;
  readonly #fenced = Promise.withResolvers<never>();
  #tail: Promise<void> = Promise.resolve();
  #waiting = 0;

  constructor(host: ChannelHost, lease: LeaseRef) {
    this.#host = host;
    this.#lease = lease;
    this.fenced = this.#fenced.promise;
    this.fenced.catch(() => {});
  }

  push(draft: InboundDraft, cursor: string): void {
    const about = { conversation: draft.conversation };
    if (this.#waiting >= mostWaiting) {
      this.#host.log.error(about, "message dropped: too many messages wait for the store");
      return;
    }
    this.#waiting += 1;
    this.#tail = this.#behind(this.#tail, draft, cursor, about);
  }

  /** Resolves when every received message is stored or permanently refused. */
  async settled(): Promise<void> {
    await this.#tail;
  }

  async #behind(before: Promise<void>, draft: InboundDraft, cursor: string, about: LogFields): Promise<void> {
    await before;
    const position = { lease: this.#lease, cursor };
    const pass = async () => this.#host.accept(draft, position);
    await untilStored(this.#host.log, about, this.#lease.signal, pass).catch((error: unknown) => {
      this.#fenced.reject(error);
    });
    this.#waiting -= 1;
  }
}

/**
 * Passes a message to the gateway until it is stored or can never be stored, or `signal` aborts. Rejects with the WireError FENCED when the
 * lease was lost.
 */
export async function untilStored(
  log: ChannelHost["log"],
  about: LogFields,
  signal: AbortSignal,
  pass: () => Promise<unknown>,
): Promise<void> {
  for (let failures = 1; !signal.aborted; failures += 1) {
    try {
      await skipUnstorable(log, about, pass);
      return;
    } catch (error) {
      if (WireError.is(error, "FENCED")) throw error;
      const waitMs = backoffMs(failures, pauses);
      log.warn({ ...about, reason: errorMessage(error), waitMs }, "message not stored: retried");
      await delay(waitMs, undefined, { signal }).catch(() => undefined);
    }
  }
}
