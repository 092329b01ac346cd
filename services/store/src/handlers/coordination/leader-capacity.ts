// What the leader last reported about its free turns. It may be out of date: a started turn then waits for a slot, or for the next sweep.
import type { Bus } from "@parley/bus";
import { leaderCapacity } from "@parley/contracts";

/** A report counts this long; the leader sends one every 2 s. */
const validMs = 5_000;
/** The leader is regarded as silent after five missing reports. */
const silentMs = 10_000;

export class LeaderCapacity {
  #report: { epoch: number; free: boolean; receivedAtMs: number } | undefined;

  constructor(bus: Bus) {
    bus.subscribe(leaderCapacity, {}, ({ epoch, free }) => {
      // Reports of a former leader may arrive late.
      if (epoch >= (this.#report?.epoch ?? 0)) this.#report = { epoch, free, receivedAtMs: performance.now() };
    });
  }

  /** The epoch of the leader, if it has reported free turns lately. */
  freeEpoch(): number | undefined {
    const report = this.#report;
    return report?.free === true && performance.now() < report.receivedAtMs + validMs ? report.epoch : undefined;
  }

  /** Whether the leader has stopped reporting; false before its first report, because a leader of an older version sends none. */
  isSilent(): boolean {
    return this.#report !== undefined && performance.now() > this.#report.receivedAtMs + silentMs;
  }
}
