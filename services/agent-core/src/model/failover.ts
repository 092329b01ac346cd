// The model of one turn: the first available one of a chain, and the next when it fails. Within a turn it only moves
// forward, because each change loses the provider's cache. call.ts does retries and delays.
import type { CircuitBreaker } from "./circuit-breaker.ts";
import {
  ModelError,
  type Failover,
  type ModelDelta,
  type ModelFailure,
  type ModelProvider,
  type ModelReply,
  type ModelRequest,
  type ModelSize,
  type PriceList,
} from "./provider.ts";

export interface Candidate {
  /** With the provider's prefix. */
  fullName: string;
  provider: ModelProvider;
  /** Shared by all turns. */
  breaker: CircuitBreaker;
}

export interface TurnModelOptions {
  /** Attempts of one model before a failover. */
  fallbackAfter: number;
  onFailover: (failover: Failover) => void;
}

/** How long a model is not called after a lasting failure. */
const lastingMs = 5 * 60_000;

/** Failures that another model may avoid. Rejected keys and requests would be rejected again and need a person. */
const mendable: ReadonlySet<ModelFailure> = new Set([
  "overloaded",
  "server",
  "connection",
  "stalled",
  "rate_limit",
  "spend_limit",
  "unknown_model",
]);
/** Failures that last: the model is not called again for a while. */
const lasting: ReadonlySet<ModelFailure> = new Set(["spend_limit", "unknown_model"]);
/** Failures that indicate a broken model; a rate limit only requires a delay. */
const broken: ReadonlySet<ModelFailure> = new Set(["overloaded", "server", "connection", "stalled"]);

/** One instance per turn; must not be shared. */
export class TurnModel implements ModelProvider {
  readonly #options: TurnModelOptions;
  readonly #first: Candidate;
  /** Candidates after the current one. */
  #rest: Candidate[];
  #current: Candidate;
  #begun = false;

  constructor(first: Candidate, rest: readonly Candidate[], options: TurnModelOptions) {
    this.#first = first;
    this.#rest = [...rest];
    this.#current = first;
    this.#options = options;
  }

  /** The model in use. */
  get current(): ModelProvider {
    return this.#current.provider;
  }
  get name(): string {
    return this.#current.provider.name;
  }
  get model(): string {
    return this.#current.provider.model;
  }
  get priceList(): PriceList {
    return this.#current.provider.priceList;
  }
  /** The model in use, with its provider's prefix. */
  get fullName(): string {
    return this.#current.fullName;
  }

  note(): string | null {
    return this.#current.provider.note();
  }
  prepare(): Promise<void> {
    return this.#current.provider.prepare();
  }
  size(signal: AbortSignal): Promise<ModelSize> {
    return this.#current.provider.size(signal);
  }

  async stream(
    request: ModelRequest,
    on: { delta(delta: ModelDelta): void; alive(): void },
    signal: AbortSignal,
  ): Promise<ModelReply> {
    this.#begin();
    const { provider, breaker } = this.#current;
    breaker.begin();
    try {
      const reply = await provider.stream(request, on, signal);
      breaker.succeeded();
      return reply;
    } catch (error) {
      if (error instanceof ModelError && broken.has(error.failure)) breaker.failed();
      else breaker.undecided();
      throw error;
    }
  }

  moveOn(error: ModelError, failures: number, times: { tries: number; capMs: number }): Failover | undefined {
    if (!mendable.has(error.failure)) return undefined;
    const { breaker } = this.#current;
    const waitMs = lasting.has(error.failure) ? lastingMs : (error.retryAfterMs ?? 0);
    const tooLong = lasting.has(error.failure) || waitMs > times.capMs;
    if (tooLong) breaker.coolDown(waitMs);
    const enough = error.failure === "rate_limit" ? times.tries : this.#options.fallbackAfter;
    if (!tooLong && failures < enough && breaker.allows) return undefined;
    return this.#move(`${error.failure}: ${error.message}`);
  }

  /** On the turn's first call: skips a model with an open breaker, unless there is no other. */
  #begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    if (!this.#first.breaker.allows) this.#move("it failed too often recently");
  }

  #move(reason: string): Failover | undefined {
    const index = this.#rest.findIndex((candidate) => candidate.breaker.allows);
    const next = this.#rest[index];
    if (next === undefined) return undefined;
    this.#rest = this.#rest.slice(index + 1);
    const failover = { from: this.#current.fullName, to: next.fullName, reason };
    this.#current = next;
    this.#options.onFailover(failover);
    return failover;
  }
}
