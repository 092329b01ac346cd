// The heartbeat in the leader: once in each stretch of time it looks at HEARTBEAT.md and asks the store for a row in the owner's
// thread. A stretch is known by its beginning, so that two leaders have one heartbeat between them.
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { newId, store, type HeartbeatSettings, type OutputOf, type controlHeartbeat } from "@parley/contracts";
import { asksForNothing, heartbeatText, isActive, slotOf, trustedChecklist } from "./heartbeat.ts";

type Outcome = OutputOf<typeof controlHeartbeat>;

export interface HeartbeatDeps {
  bus: Bus;
  log: Logger;
  epoch: number;
  settings: HeartbeatSettings;
  /** IANA name. */
  timeZone: string;
}

/** So long after a stretch has begun its heartbeat is still tried; later it is left out. Longer than a takeover takes. */
const graceMs = 60_000;
const document = "HEARTBEAT.md";

export class Heartbeat {
  readonly #deps: HeartbeatDeps;
  /** The stretch that is done with, by its beginning. */
  #done = 0;

  constructor(deps: HeartbeatDeps) {
    this.#deps = deps;
  }

  /** Beats where it is time to. Throws what the store throws; then the next call tries again. */
  async poll(now: number): Promise<void> {
    const { settings, timeZone, log } = this.#deps;
    if (settings.every_minutes === 0) return;
    const slot = slotOf(now, settings.every_minutes);
    if (slot === this.#done) return;
    if (now - slot <= graceMs && isActive(settings.active_hours, timeZone, now)) {
      const { outcome } = await this.#beat(new Date(slot).toISOString(), settings.skip_when_busy);
      log.debug({ outcome, slot: new Date(slot).toISOString() }, "heartbeat");
    }
    this.#done = slot;
  }

  /** Beats because a person wants it, whatever the hour. */
  byHand(opId: string): Promise<Outcome> {
    return this.#beat(`hand:${opId}`, this.#deps.settings.skip_when_busy);
  }

  async #beat(slot: string, skipWhenBusy: boolean): Promise<Outcome> {
    const { bus, log, epoch, settings } = this.#deps;
    const { document: kept } = await bus.request(store.documentGet, { path: document, withUntrusted: true });
    if (kept === null) return { outcome: "empty", inboxId: null };
    // Whose lines nobody says are not done: a store of the version before.
    const checklist = trustedChecklist(kept.content, kept.untrusted ?? [{ from: 1, to: Number.MAX_SAFE_INTEGER }]);
    if (checklist.leftOut > 0)
      log.warn(
        { lines: checklist.leftOut },
        "lines of HEARTBEAT.md that outsiders had a hand in are left out until a person has vouched for them: parley docs vouch HEARTBEAT.md",
      );
    if (asksForNothing(checklist.text)) return { outcome: "empty", inboxId: null };
    const text = heartbeatText(checklist, settings.ok_token);
    const { outcome, inboxId } = await bus.request(store.heartbeatFire, {
      opId: newId(),
      epoch,
      slot,
      text,
      skipWhenBusy,
    });
    return { outcome: outcome === "busy" ? "busy" : "fired", inboxId };
  }
}
