// How often a request is sent: again while nobody serves it and, if it is idempotent, without a reply, until its deadline.
import { setTimeout as delay } from "node:timers/promises";
import { abortable, backoffMs, omitUndefined } from "@parley/kit";
import type { WireError } from "@parley/contracts";
import { asWireError, cancelled, isDenied, noReply } from "./envelope.ts";
import type { RequestOptions } from "./request-options.ts";
import { growth, maxResendMs, type ResendDelay } from "./resend-delay.ts";

const defaultTimeoutMs = 10_000;
/** Minimum length of an attempt; with less time left, the previous attempt's error is more informative. */
const shortestTryMs = 100;

export interface RepeatableRequest<T> extends Pick<RequestOptions, "timeoutMs" | "attemptMs" | "once" | "signal"> {
  idempotent: boolean;
  /** Undefined: nobody else can answer, so a repetition has no hurry. */
  resend: ResendDelay | undefined;
  /** Whether nothing can be sent any more. */
  isClosed(): boolean;
  /** Sends the request once and resolves with the text of the reply. */
  send(timeoutMs: number): Promise<string>;
  /** Throws the error of a reply. */
  read(reply: string): T;
}

/** Resolves with the first reply to any attempt. Throws WireError: the error of the reply, or UNAVAILABLE, TIMEOUT, CANCELLED. */
export async function sendUntilReply<T>(subject: string, request: RepeatableRequest<T>): Promise<T> {
  const { resend, signal } = request;
  const attempts = new Attempts(request);
  const replies = new Replies<T>();
  const attempt = async (): Promise<T> => {
    const sentAtMs = performance.now();
    const reply = await request.send(attempts.leftMs);
    resend?.note(performance.now() - sentAtMs);
    return request.read(reply);
  };
  for (;;) {
    try {
      return await abortable(replies.next(subject, attempt(), attempts.nextMs), signal);
    } catch (error) {
      const aborted = signal?.aborted === true && error === signal.reason;
      const failure = aborted ? cancelled(subject) : asWireError(error, subject);
      const pause = attempts.pauseAfter(failure, { denied: isDenied(error), closed: request.isClosed() });
      await delay(pause, undefined, omitUndefined({ signal })).catch(() => {
        throw cancelled(subject);
      });
    }
  }
}

/** Pause before a retry: short at first, because a restarted service is back within a second, then longer, to limit the load. */
export function pauseMs(tries: number): number {
  return backoffMs(tries - 7, { firstMs: 25, maxMs: 1_000 }) * (0.75 + Math.random() / 2);
}

class Attempts {
  readonly #deadline: number;
  readonly #firstMs: number;
  readonly #longestMs: number;
  readonly #idempotent: boolean;
  readonly #once: boolean;
  #tries = 0;
  #timeouts = 0;
  #denial: WireError | undefined;

  constructor({ idempotent, timeoutMs, attemptMs, once, resend }: RepeatableRequest<unknown>) {
    this.#deadline = performance.now() + (timeoutMs ?? defaultTimeoutMs);
    this.#firstMs = attemptMs ?? resend?.ms ?? maxResendMs;
    this.#longestMs = attemptMs ?? maxResendMs;
    this.#idempotent = idempotent;
    this.#once = once === true;
  }

  /** Until the deadline of the request, in milliseconds. */
  get leftMs(): number {
    return Math.max(1, this.#deadline - performance.now());
  }

  /** How long the next attempt may take, in milliseconds: until the request is sent again, or else until its deadline. */
  get nextMs(): number {
    if (!this.#idempotent || this.#once) return this.leftMs;
    return Math.min(this.#firstMs * growth ** this.#timeouts, this.#longestMs, this.leftMs);
  }

  /**
   * The pause in milliseconds before the next attempt. Throws the error of the request if there is none. `denied`: NATS has refused the
   * request. `closed`: nothing can be sent any more.
   */
  pauseAfter(failure: WireError, { denied, closed }: { denied: boolean; closed: boolean }): number {
    if (denied) this.#denial = failure;
    this.#tries += 1;
    if (failure.code === "TIMEOUT") this.#timeouts += 1;
    const again = failure.code === "UNAVAILABLE" || (failure.code === "TIMEOUT" && this.#idempotent);
    const pause = pauseMs(this.#tries);
    if (again && !this.#once && !closed && performance.now() + pause + shortestTryMs <= this.#deadline) return pause;
    // A last attempt without a reply says less than an earlier denial.
    throw failure.code === "TIMEOUT" ? (this.#denial ?? failure) : failure;
  }
}

/** The replies to the attempts of one request. A reply also counts after its attempt was given up: a slow replica may still be the first. */
class Replies<T> {
  readonly #first = Promise.withResolvers<T>();

  constructor() {
    this.#first.promise.catch(() => undefined);
  }

  /** Rejects with the failure of this attempt, the error of a reply to an earlier one, or TIMEOUT after `waitMs`. */
  async next(subject: string, attempt: Promise<T>, waitMs: number): Promise<T> {
    attempt.then(this.#first.resolve, (error: unknown) => {
      // Says that there was no reply: another attempt may still get one.
      const { code } = asWireError(error, subject);
      if (code !== "UNAVAILABLE" && code !== "TIMEOUT") this.#first.reject(error);
    });
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject(noReply(subject)), waitMs);
    try {
      return await Promise.race([attempt, this.#first.promise, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}
