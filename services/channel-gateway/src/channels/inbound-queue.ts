// For platforms that never redeliver: passes messages to the gateway one at a time, and retries a message that could not be stored while the
// lease is held.
import { setTimeout as delay } from "node:timers/promises";
import { errorMessage, WireError } from "@parley/contracts";
import type { ChannelHost, LeaseRef, InboundDraft } from "./channel.ts";

const firstPauseMs = 100;
const longestPauseMs = 5_000;
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
    const about = { channel: draft.replyTo.channel, account: draft.replyTo.account, conversation: draft.conversation };
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

  async #behind(before: Promise<void>, draft: InboundDraft, cursor: string, about: object): Promise<void> {
    await before;
    await this.#offer(draft, cursor, about);
    this.#waiting -= 1;
  }

  async #offer(draft: InboundDraft, cursor: string, about: object): Promise<void> {
    const { signal } = this.#lease;
    for (let pauseMs = firstPauseMs; !signal.aborted; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      try {
        await this.#host.accept(draft, { lease: this.#lease, cursor });
        return;
      } catch (error) {
        const reason = errorMessage(error);
        if (WireError.is(error, "FENCED")) {
          this.#fenced.reject(error);
          return;
        }
        if (WireError.is(error, "INVALID_INPUT", "TOO_LARGE")) {
          this.#host.log.error({ ...about, reason }, "message skipped: it can never be stored");
          return;
        }
        this.#host.log.warn({ ...about, reason, waitMs: pauseMs }, "message not stored: retried");
        await delay(pauseMs, undefined, { signal }).catch(() => {});
      }
    }
  }
}
