// Reports to the stores whether turns are free: a store then starts a turn in the commit of its message, without a claim.
import type { Bus } from "@parley/bus";
import { leaderCapacity } from "@parley/contracts";
import type { SessionRunner } from "./session-runner.ts";

export interface CapacityReport {
  /** Reports a change; call after a session started or ended. */
  changed(): void;
  /** Reports in any case; a report counts for 5 s. */
  repeat(): void;
  /** Reports that no turn is free. */
  stop(): void;
}

/** `maxActive`: sessions that may be active at the same time. */
export function reportCapacity(bus: Bus, epoch: number, sessions: SessionRunner, maxActive: number): CapacityReport {
  let free = false;
  const publish = () => bus.publish(leaderCapacity, { epoch, free });
  // An eighth has to be free again, so that a busy leader does not report every turn.
  const isFree = () => {
    const limit = free ? maxActive : Math.ceil((maxActive * 7) / 8);
    return sessions.acceptsStarted && sessions.activeCount < limit;
  };
  return {
    changed() {
      if (isFree() === free) return;
      free = !free;
      publish();
    },
    repeat() {
      free = isFree();
      publish();
    },
    stop() {
      free = false;
      publish();
    },
  };
}
