// What the leader last reported about its free turns. It may be out of date: a started turn then waits for a slot, or for the next sweep.
import type { Bus } from "@parley/bus";
import { leaderCapacity } from "@parley/contracts";

/** A report counts this long; the leader sends one every 2 s. */
const validMs = 5_000;

export class LeaderCapacity {
  #report: { epoch: number; free: boolean; untilMs: number } | undefined;

  constructor(bus: Bus) {
    bus.subscribe(leaderCapacity, {}, ({ epoch, free }) => {
      // Reports of a former leader may arrive late.
      if (epoch >= (this.#report?.epoch ?? 0)) this.#report = { epoch, free, untilMs: performance.now() + validMs };
    });
  }

  /** The epoch of the leader, if it has reported free turns lately. */
  freeEpoch(): number | undefined {
    const report = this.#report;
    return report?.free === true && performance.now() < report.untilMs ? report.epoch : undefined;
  }
}
