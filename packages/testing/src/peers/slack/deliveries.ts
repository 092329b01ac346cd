// Delivers events, presses of buttons and slash commands to the app until they are acknowledged. An event is tried four times in all, as
// the real service does; the others once, because a person sees their failure immediately.
import { setTimeout as delay } from "node:timers/promises";
import type { SlackState } from "./state.ts";

export interface Delivery {
  /** The id of the event, or the trigger of an interaction. */
  readonly id: string;
  readonly type: "events_api" | "interactive" | "slash_commands";
  readonly payload: Record<string, unknown>;
  /** How often it was sent to the app. */
  sends: number;
  /** How often the app acknowledged it. */
  acknowledgements: number;
  /** What the app sent with its acknowledgement. */
  answer: unknown;
  /** Never acknowledged, and not tried again. */
  lost: boolean;
}

export interface Attempt {
  number: number;
  reason: string | undefined;
}

export interface Transport {
  /** Returns why the app did not acknowledge the delivery, or null when it did. */
  deliver(delivery: Delivery, attempt: Attempt): Promise<string | null>;
}

export interface DeliveryTimes {
  /** How long the app may take to acknowledge; the real service waits 3 s. */
  ackTimeoutMs: number;
  /** Pauses before the second, third and fourth attempt; the real service waits a moment, a minute and five minutes. */
  retryDelaysMs: readonly number[];
}

export class Deliveries {
  readonly all: Delivery[] = [];
  readonly #state: SlackState;
  readonly #times: DeliveryTimes;
  readonly #running = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  transport: Transport;

  constructor(state: SlackState, times: DeliveryTimes, transport: Transport) {
    this.#state = state;
    this.#times = times;
    this.transport = transport;
  }

  push(type: Delivery["type"], id: string, payload: Record<string, unknown>): Delivery {
    const delivery: Delivery = { id, type, payload, sends: 0, acknowledgements: 0, answer: undefined, lost: false };
    this.all.push(delivery);
    const running = this.#run(delivery).finally(() => this.#running.delete(running));
    this.#running.add(running);
    return delivery;
  }

  /** Sends an acknowledged event again, as the real service does when an acknowledgement was lost. */
  async repeat(delivery: Delivery): Promise<string | null> {
    return this.transport.deliver(delivery, { number: 1, reason: "http_timeout" });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#running);
  }

  async #run(delivery: Delivery): Promise<void> {
    const { signal } = this.#closing;
    const pauses = delivery.type === "events_api" ? [0, ...this.#times.retryDelaysMs] : [0];
    let reason: string | undefined;
    for (const [number, pauseMs] of pauses.entries()) {
      if (pauseMs > 0) await delay(pauseMs, undefined, { signal }).catch(() => {});
      if (signal.aborted || delivery.acknowledgements > 0) return;
      reason = (await this.transport.deliver(delivery, { number, reason })) ?? undefined;
      this.#state.changed();
      if (reason === undefined) return;
    }
    delivery.lost = true;
    this.#state.changed();
  }
}
