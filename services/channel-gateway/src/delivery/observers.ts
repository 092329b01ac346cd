// Posts the events of all sessions to observers. For each observer one replica does it, under a lease. It subscribes to the live view
// like any other watcher, so it cannot affect a turn.
//
//   subscribed ─→ posting queue ─→ unsubscribed        after `max_failures` in a row; the lease reconnects with backoff
import type { Bus } from "@parley/bus";
import type { Chassis } from "@parley/chassis";
import { errorMessage, sessionEvent, type ObserverSettings, type SessionEvent } from "@parley/contracts";
import type { AccountStates, Disabled } from "./account-states.ts";
import type { LeasePool } from "./lease-pool.ts";
import { ObserverQueue, formatBatch, type Batch } from "./observer-queue.ts";

/** An observer with its resolved token. */
export interface Observer {
  /** Its index in the settings. */
  name: string;
  settings: ObserverSettings;
  token: string | undefined;
}

export interface ObserverDeps {
  bus: Bus;
  metrics: Chassis["metrics"];
  states: AccountStates;
  leases: LeasePool;
}

/** Returns the configured observers, and those that are disabled because their token is missing. */
export function createObservers(
  settings: readonly ObserverSettings[],
  secrets: ReadonlyMap<string, string>,
): { observers: Observer[]; disabled: Disabled[] } {
  const observers: Observer[] = [];
  const disabled: Disabled[] = [];
  for (const [index, each] of settings.entries()) {
    const name = String(index);
    const { token_env: variable } = each;
    const token = variable === undefined ? undefined : secrets.get(variable);
    if (variable !== undefined && token === undefined) {
      const reason = `[[observers]] token_env: the environment variable ${variable} is not set; set it to the token`;
      disabled.push({ name: `observer:${name}`, reason });
    } else observers.push({ name, settings: each, token });
  }
  return { observers, disabled };
}

/** Adds the observers' leases to the pool; a lease that is held posts events. */
export function openObservers(deps: ObserverDeps, observers: readonly Observer[]): void {
  const { bus, leases, states } = deps;
  for (const observer of observers) {
    const { name } = observer;
    const count: Count = (result, by) =>
      deps.metrics.count("parley_observer_events_total", { observer: name, result }, by);
    leases.add({
      name: `observer:${name}`,
      slot: 0,
      connect: (lease) => observe(bus, observer, count, lease.signal),
      failed: (error) => states.set(`observer:${name}`, { state: "failing", reason: errorMessage(error) }),
      released: () => states.set(`observer:${name}`, { state: "standby" }),
    });
  }
}

type Count = (result: "sent" | "dropped", by: number) => void;

/** Runs until the signal aborts. Throws after too many failed posts in a row. */
export async function observe(
  bus: Pick<Bus, "subscribe">,
  { settings, token }: Observer,
  count: Count,
  signal: AbortSignal,
): Promise<void> {
  const queue = new ObserverQueue(settings.buffer);
  const subscription = bus.subscribe(sessionEvent, {}, (event, { session = "" }) => {
    if (isDelta(event) && !settings.deltas) return;
    if (!queue.push(session, event)) count("dropped", 1);
  });
  try {
    for (let failures = 0; ;) {
      const batch = await queue.next(signal);
      const failure = await post(settings, token, batch, signal);
      if (failure === undefined) {
        failures = 0;
        count("sent", batch.events.length);
        continue;
      }
      failures += 1;
      count("dropped", batch.events.length);
      queue.countAsDropped(batch);
      if (failures >= settings.max_failures) {
        throw new Error(`the observer at ${settings.url} failed ${failures} posts in a row: ${failure}`);
      }
    }
  } finally {
    subscription.close();
  }
}

function isDelta(event: SessionEvent): boolean {
  return event.type === "text.delta" || event.type === "reasoning.delta" || event.type === "tool.input";
}

/** Returns the reason of a failure; undefined on success. */
async function post(
  settings: ObserverSettings,
  token: string | undefined,
  batch: Batch,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const response = await fetch(settings.url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: formatBatch(batch),
      // Events go only to the configured address.
      redirect: "manual",
      signal: AbortSignal.any([AbortSignal.timeout(settings.timeout_seconds * 1_000), signal]),
    });
    await response.body?.cancel();
    return response.ok ? undefined : `status ${response.status}`;
  } catch (error) {
    const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return errorMessage(inner);
  }
}
