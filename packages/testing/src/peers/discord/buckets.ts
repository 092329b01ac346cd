// Rate limits of the REST API: a bucket per route and channel, and the global one.

interface RateLimit {
  limit: number;
  windowMs: number;
}

export interface RateLimits {
  /** Sending messages to one channel, editing in it, typing: each on its own. */
  channel: RateLimit;
  reactions: RateLimit;
  /** All calls of a bot. */
  global: RateLimit;
}

/** What the real service applied when last measured by others; it reports the current values in headers and may change them. */
export const usualLimits: RateLimits = {
  channel: { limit: 5, windowMs: 5_000 },
  reactions: { limit: 1, windowMs: 250 },
  global: { limit: 50, windowMs: 1_000 },
};

interface Passage {
  limited: boolean;
  global: boolean;
  retryAfterMs: number;
  headers: Record<string, string>;
}

export class Buckets {
  readonly #limits: RateLimits;
  readonly #now: () => number;
  readonly #windows = new Map<string, { used: number; endsMs: number }>();

  constructor(limits: RateLimits, now = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
  }

  /** Counts a call. `key`: route and channel; calls of other routes have no bucket of their own. */
  pass(route: string, key: string): Passage {
    const now = this.#now();
    const global = this.#use("global", this.#limits.global, now);
    if (global.left < 0)
      return {
        limited: true,
        global: true,
        retryAfterMs: global.resetMs,
        headers: headersOf(global.resetMs, { "x-ratelimit-global": "true", "x-ratelimit-scope": "global" }),
      };
    const limit = /reactions/.test(route)
      ? this.#limits.reactions
      : /^(?:POST|PATCH) \/channels/.test(route)
        ? this.#limits.channel
        : null;
    if (limit === null) return { limited: false, global: false, retryAfterMs: 0, headers: {} };
    const { left, resetMs } = this.#use(key, limit, now);
    const headers = {
      "x-ratelimit-limit": String(limit.limit),
      "x-ratelimit-remaining": String(Math.max(0, left)),
      "x-ratelimit-reset": String((Date.now() + resetMs) / 1000),
      "x-ratelimit-reset-after": String(resetMs / 1000),
      "x-ratelimit-bucket": Buffer.from(route).toString("hex").slice(0, 32),
    };
    if (left >= 0) return { limited: false, global: false, retryAfterMs: 0, headers };
    return {
      limited: true,
      global: false,
      retryAfterMs: resetMs,
      headers: headersOf(resetMs, { ...headers, "x-ratelimit-scope": "user" }),
    };
  }

  #use(key: string, { limit, windowMs }: RateLimit, now: number): { left: number; resetMs: number } {
    const known = this.#windows.get(key);
    const window = known !== undefined && known.endsMs > now ? known : { used: 0, endsMs: now + windowMs };
    window.used += 1;
    this.#windows.set(key, window);
    return { left: limit - window.used, resetMs: Math.ceil(window.endsMs - now) };
  }
}

/** The header counts whole seconds, the body fractions. */
function headersOf(retryAfterMs: number, headers: Record<string, string>): Record<string, string> {
  return { ...headers, "retry-after": String(Math.ceil(retryAfterMs / 1000)) };
}
