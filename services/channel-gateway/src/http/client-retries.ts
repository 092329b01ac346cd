// Recognizes the automatic retries of OpenAI clients. After a timeout or a server error they send the same request again without an
// idempotency key, so the retry must find the message that the first attempt stored. Known to this replica only.
import { randomUUID } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { sha256Hex } from "../channels/digest.ts";

/** The clients' default timeout is 10 minutes; a retry follows within seconds. */
const rememberMs = 15 * 60 * 1_000;
const maxRemembered = 10_000;

interface Attempt {
  key: string;
  digest: string;
  number: number;
  /** The connection was closed before the answer was complete, or the answer was an error that clients retry. */
  failed: boolean;
  until: number;
}

export class ClientRetries {
  readonly #attempts = new Set<Attempt>();

  /** The idempotency key of a request: its own, that of the attempt that it repeats, or a new one. Undefined: none is needed. */
  keyOf(request: FastifyRequest, reply: FastifyReply, nowMs: number = Date.now()): string | string[] | undefined {
    const own = request.headers["idempotency-key"];
    if (own !== undefined) return own;
    const header = request.headers["x-stainless-retry-count"];
    if (typeof header !== "string" || !/^\d{1,2}$/.test(header)) return undefined;
    const number = Number(header);
    this.#forget(nowMs);
    const digest = sha256Hex(JSON.stringify([request.holder, request.url, request.body]));
    const previous = number === 0 ? undefined : this.#take(digest, number - 1);
    const key = previous?.key ?? `retry-${randomUUID()}`;
    const attempt = { key, digest, number, failed: false, until: nowMs + rememberMs };
    this.#attempts.add(attempt);
    reply.raw.once("close", () => {
      attempt.failed = !reply.raw.writableFinished || isRetried(reply.raw.statusCode);
      if (!attempt.failed) this.#attempts.delete(attempt);
    });
    return key;
  }

  /** The attempt that a retry repeats: one that failed, or one whose end has not arrived here yet. */
  #take(digest: string, number: number): Attempt | undefined {
    const same = [...this.#attempts].filter((each) => each.digest === digest && each.number === number);
    const attempt = same.find(({ failed }) => failed) ?? same[0];
    if (attempt !== undefined) this.#attempts.delete(attempt);
    return attempt;
  }

  #forget(nowMs: number): void {
    for (const attempt of this.#attempts) {
      if (attempt.until > nowMs && this.#attempts.size < maxRemembered) return;
      this.#attempts.delete(attempt);
    }
  }
}

function isRetried(status: number): boolean {
  return status >= 500 || status === 408 || status === 409 || status === 429;
}
