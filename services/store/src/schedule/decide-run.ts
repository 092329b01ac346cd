// Decides the outcome of one due time and the next due time. Pure.
import { errorMessage } from "@parley/contracts";
import type { Schedule, ScheduleRun } from "@parley/contracts";
import { nextDue, type Recurrence } from "./recurrence.ts";

/** A due time counts as missed after this delay, which is longer than a takeover. */
const missedAfterMs = 60_000;

export interface DueJob extends Pick<Schedule, "timeZone" | "overlap" | "missed" | "maxRuns" | "runs"> {
  when: Recurrence;
  /** When the schedule was set; milliseconds since 1970, like all times here. */
  anchor: number;
  due: number;
  now: number;
  /** The previous run's input is queued or its turn is running. */
  busy: boolean;
}

export interface RunDecision {
  outcome: ScheduleRun["outcome"];
  reason: string | null;
  runs: number;
  /** Null: the job has no further run. */
  next: number | null;
}

/** A delay shorter than a takeover does not count. A longer one makes all due times until now one missed period. */
export function decideRun(job: DueJob): RunDecision {
  const missed = job.now - job.due > missedAfterMs;
  const next = (runs: number) => {
    if (job.maxRuns !== null && runs >= job.maxRuns) return null;
    const at = nextDue(job.when, job.timeZone, job.anchor, missed ? job.now : job.due);
    // Otherwise the job would be due again at once, without end.
    if (at !== null && at <= job.due) throw new Error("the schedule has no due time after this one");
    return at;
  };
  try {
    if (missed && job.missed === "skip") {
      return {
        outcome: "missed",
        reason: "no leader was running at its due time",
        runs: job.runs,
        next: next(job.runs),
      };
    }
    if (job.busy && job.overlap === "skip") {
      return { outcome: "skipped", reason: "the previous run had not ended", runs: job.runs, next: next(job.runs) };
    }
    const reason = missed ? "late: no leader was running at its due time; further missed times are skipped" : null;
    return { outcome: "fired", reason, runs: job.runs + 1, next: next(job.runs + 1) };
  } catch (error) {
    // Otherwise one invalid job would block all others.
    return {
      outcome: "failed",
      reason: errorMessage(error),
      runs: job.runs,
      next: null,
    };
  }
}
