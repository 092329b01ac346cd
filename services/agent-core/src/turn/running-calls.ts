// Follows the tool calls that run on tool-runners. One subscription for each kind of message serves all calls: a subscription of each call
// would cost the bus six more messages.
import type { Bus } from "@parley/bus";
import { callToken, stepSettled, toolAlive, toolProgress, type ToolProgress } from "@parley/contracts";

export interface CallObserver {
  /** `asks`: the call waits for a person. */
  alive(asks: boolean): void;
  progress(progress: ToolProgress): void;
  /** The store has the call's result. */
  settled(): void;
}

export class RunningCalls {
  /** By call token. */
  readonly #observers = new Map<string, CallObserver>();

  /** Subscribes immediately; the subscriptions end with the bus. */
  constructor(bus: Pick<Bus, "subscribe">) {
    const of = (call: { turnId: string; n: number }) => this.#observers.get(callToken(call.turnId, call.n));
    bus.subscribe(toolAlive, {}, (event) => of(event)?.alive(event.asks === true));
    bus.subscribe(toolProgress, {}, (event) => of(event)?.progress(event.progress));
    bus.subscribe(stepSettled, {}, (hint) => of(hint)?.settled());
  }

  /** Follows a call until the returned function is called; the same call replaces its earlier observer. */
  follow(call: { turnId: string; n: number }, observer: CallObserver): () => void {
    const token = callToken(call.turnId, call.n);
    this.#observers.set(token, observer);
    return () => {
      if (this.#observers.get(token) === observer) this.#observers.delete(token);
    };
  }
}
