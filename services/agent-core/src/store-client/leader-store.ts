// The one client of agent-core for the store. It owns the epoch, the operation ids and the timeouts, and recognizes the
// loss of the leadership.
import type { Bus, RequestOptions } from "@parley/bus";
import { newId, store, WireError, type InputOf, type OutputOf } from "@parley/contracts";
import { z } from "zod";

/** Another agent-core leads: nothing that this process still does has an effect. */
export class LeadershipLostError extends WireError {
  override readonly name = "LeadershipLostError";

  constructor(cause: unknown) {
    super("STALE_EPOCH", "another agent-core has taken over", { cause });
  }
}

/** Default patience: a leader cannot continue without the store, and an outage must not lose a committed answer. */
const patienceMs = 60 * 60 * 1000;

/** Timeout of requests whose work is repeated later anyway. */
export const briefMs = 10_000;

type StoreContract = Extract<(typeof store)[keyof typeof store], { kind: "request" }>;

/** The input without the fields that this client adds. `opId`: given only for an operation that must repeat an earlier one. */
type Unfenced<I> = I extends unknown ? Omit<I, "epoch" | "opId"> & { opId?: string } : never;

/** Requests of the leader to the store: each contains the epoch and, if its contract has one, an operation id. */
export class LeaderStore {
  readonly epoch: number;
  readonly #bus: Pick<Bus, "request">;
  readonly #lost: (reason: string) => void;

  /** `lost` is called on the first sign of another leader; it must end the process. */
  constructor(bus: Pick<Bus, "request">, epoch: number, lost: (reason: string) => void) {
    this.#bus = bus;
    this.epoch = epoch;
    this.#lost = lost;
  }

  /** Begins a new epoch for `holder`. Resolves with the current epoch, and changes nothing, when that is not `after`. */
  static async acquire(
    bus: Pick<Bus, "request">,
    input: Omit<InputOf<typeof store.leadershipAcquire>, "opId">,
    options: RequestOptions & { lost: (reason: string) => void },
  ): Promise<LeaderStore | { currentEpoch: number }> {
    const { lost, ...rest } = options;
    const { epoch, unchanged } = await bus.request(store.leadershipAcquire, { opId: newId(), ...input }, rest);
    return unchanged === true ? { currentEpoch: epoch } : new LeaderStore(bus, epoch, lost);
  }

  /**
   * Sends a request with the epoch and an operation id, if its contract has them, for up to an hour. Rejects with
   * LeadershipLostError, or with the WireError of the store.
   */
  async request<C extends StoreContract>(
    contract: C,
    input: Unfenced<InputOf<C>>,
    options: Pick<RequestOptions, "timeoutMs" | "signal"> = {},
  ): Promise<OutputOf<C>> {
    const fields = contract.input instanceof z.ZodObject ? contract.input.shape : {};
    const fenced = {
      ...("opId" in fields ? { opId: newId() } : {}),
      ...input,
      ...("epoch" in fields ? { epoch: this.epoch } : {}),
    } as InputOf<C>;
    try {
      return await this.#bus.request(contract, fenced, { timeoutMs: patienceMs, ...options });
    } catch (error) {
      throw this.failure(error);
    }
  }

  /** The error, or LeadershipLostError if it means that: also for answers of services that act under this epoch. */
  failure(error: unknown): unknown {
    if (!WireError.is(error, "STALE_EPOCH")) return error;
    this.#lost("another agent-core has taken over");
    return error instanceof LeadershipLostError ? error : new LeadershipLostError(error);
  }
}
