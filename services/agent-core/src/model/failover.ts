// The model of one turn: the first of a chain that is worth asking, and the next one when it fails. Within a turn it only moves
// forward, since each change loses the provider's cache. Retrying and waiting are call.ts's.
import type { Breaker } from "./breaker.ts";
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
  breaker: Breaker;
}

export interface TurnModelOptions {
  /** Tries of one model before the next is asked. */
  fallbackAfter: number;
  onFailover: (failover: Failover) => void;
}

/** How long a model is left alone whose account has no money left. */
const outOfMoneyMs = 5 * 60_000;

/** What another model may mend. A refused key or request would be refused again, and is for people to see. */
const mendable: ReadonlySet<ModelFailure> = new Set([
  "overloaded",
  "server",
  "connection",
  "stalled",
  "rate_limit",
  "spend_limit",
]);
/** What says that the model does not work. A rate limit says only when to come again. */
const broken: ReadonlySet<ModelFailure> = new Set(["overloaded", "server", "connection", "stalled"]);

/** One for each turn; not to be shared. */
export class TurnModel implements ModelProvider {
  readonly #options: TurnModelOptions;
  readonly #first: Candidate;
  /** Who may still be asked after the current one. */
  #rest: Candidate[];
  #current: Candidate;
  #begun = false;

  constructor(first: Candidate, rest: readonly Candidate[], options: TurnModelOptions) {
    this.#first = first;
    this.#rest = [...rest];
    this.#current = first;
    this.#options = options;
  }

  /** The model that is asked now. */
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
  /** The model that is asked, with its provider's prefix. */
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
    const waitMs = error.failure === "spend_limit" ? outOfMoneyMs : (error.retryAfterMs ?? 0);
    const tooLong = waitMs > times.capMs;
    if (tooLong) breaker.coolDown(waitMs);
    const enough = error.failure === "rate_limit" ? times.tries : this.#options.fallbackAfter;
    if (!tooLong && failures < enough && breaker.allows) return undefined;
    return this.#move(`${error.failure}: ${error.message}`);
  }

  /** The turn's first call: a model that is known not to work is not asked, unless there is no other. */
  #begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    if (!this.#first.breaker.allows) this.#move("it has failed too often of late");
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
