// Runs the heartbeat in the leader: once per interval it reads HEARTBEAT.md and requests an inbox row in the owner's thread. The start
// of the interval identifies the heartbeat, so that a takeover does not repeat it.
import type { Logger } from "@parley/chassis";
import { store, type HeartbeatSettings, type OutputOf, type controlHeartbeat } from "@parley/contracts";
import { briefMs, type LeaderStore } from "../store-client/leader-store.ts";
import { isEmptyChecklist, heartbeatText, isActive, slotOf, trustedChecklist } from "./checklist.ts";

type Outcome = OutputOf<typeof controlHeartbeat>;

export interface HeartbeatDeps {
  log: Logger;
  leaderStore: LeaderStore;
  settings: HeartbeatSettings;
  /** IANA name. */
  timeZone: string;
}

/** How long after the start of an interval its heartbeat may still run; later it is skipped. Longer than a takeover. */
const graceMs = 60_000;
const document = "HEARTBEAT.md";

export class HeartbeatRunner {
  readonly #deps: HeartbeatDeps;
  /** Start of the last handled interval. */
  #done = 0;

  constructor(deps: HeartbeatDeps) {
    this.#deps = deps;
  }

  /** Runs the heartbeat if it is due. Rethrows errors of the store; then the next call retries. */
  async poll(now: number): Promise<void> {
    const { settings, timeZone, log } = this.#deps;
    if (settings.every_minutes === 0) return;
    const slot = slotOf(now, settings.every_minutes);
    if (slot === this.#done) return;
    if (now - slot <= graceMs && isActive(settings.active_hours, timeZone, now)) {
      const { outcome } = await this.#beat(new Date(slot).toISOString(), settings.skip_when_busy);
      log.debug({ outcome, slot: new Date(slot).toISOString() }, "heartbeat run");
    }
    this.#done = slot;
  }

  /** Runs the heartbeat at a person's request, regardless of the active hours. */
  byHand(opId: string): Promise<Outcome> {
    return this.#beat(`hand:${opId}`, this.#deps.settings.skip_when_busy);
  }

  async #beat(slot: string, skipWhenBusy: boolean): Promise<Outcome> {
    const { log, leaderStore, settings } = this.#deps;
    const { document: kept } = await leaderStore.request(
      store.documentGet,
      { path: document, withUntrusted: true },
      { timeoutMs: briefMs },
    );
    if (kept === null) return { outcome: "empty", inboxId: null };
    // An older store does not report untrusted lines: then all lines count as untrusted.
    const checklist = trustedChecklist(kept.content, kept.untrusted ?? [{ from: 1, to: Number.MAX_SAFE_INTEGER }]);
    if (checklist.leftOut > 0)
      log.warn(
        { lines: checklist.leftOut },
        "untrusted lines of HEARTBEAT.md skipped: a person can mark them as trusted with parley docs vouch HEARTBEAT.md",
      );
    if (isEmptyChecklist(checklist.text)) return { outcome: "empty", inboxId: null };
    const text = heartbeatText(checklist, settings.ok_token);
    const { outcome, inboxId } = await leaderStore.request(
      store.heartbeatFire,
      { slot, text, skipWhenBusy },
      { timeoutMs: briefMs },
    );
    return { outcome: outcome === "busy" ? "busy" : "fired", inboxId };
  }
}
