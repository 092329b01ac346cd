// What becomes of one due time, and what follows it; pure.
import { errorMessage } from "@parley/contracts";
import type { Schedule, ScheduleRun } from "@parley/contracts";
import { nextDue, type When } from "./when.ts";

/** Later than this a due time counts as missed. Longer than a takeover takes. */
const missedAfterMs = 60_000;

export interface DueJob extends Pick<Schedule, "timeZone" | "overlap" | "missed" | "maxRuns" | "runs"> {
  when: When;
  /** When the schedule was set; milliseconds since 1970, like all times here. */
  anchor: number;
  due: number;
  now: number;
  /** The input of the run before still waits, or its turn runs. */
  busy: boolean;
}

export interface RunDecision {
  outcome: ScheduleRun["outcome"];
  reason: string | null;
  runs: number;
  /** Null: it has nothing more to do. */
  next: number | null;
}

/** A due time that is late by less than a takeover takes is as good as any; later ones are one missed stretch. */
export function decideRun(job: DueJob): RunDecision {
  const missed = job.now - job.due > missedAfterMs;
  const next = (runs: number) => {
    if (job.maxRuns !== null && runs >= job.maxRuns) return null;
    return nextDue(job.when, job.timeZone, job.anchor, missed ? job.now : job.due);
  };
  try {
    if (missed && job.missed === "skip") {
      return { outcome: "missed", reason: "nobody was there to run it", runs: job.runs, next: next(job.runs) };
    }
    if (job.busy && job.overlap === "skip") {
      return { outcome: "skipped", reason: "the run before it was not over", runs: job.runs, next: next(job.runs) };
    }
    const reason = missed ? "late: nobody was there at its time; other times missed are left out" : null;
    return { outcome: "fired", reason, runs: job.runs + 1, next: next(job.runs + 1) };
  } catch (error) {
    // Else one job that cannot go on would keep all the others from running.
    return {
      outcome: "failed",
      reason: errorMessage(error),
      runs: job.runs,
      next: null,
    };
  }
}
