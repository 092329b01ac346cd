// Checks the scheduled jobs: runs that failed or were missed, and jobs that are overdue.

import type { store } from "@parley/contracts";

import { type Check, error, type Finding, ok, warning } from "./finding.ts";
import { localTime, oneLine } from "../tables/format.ts";

/** The leader fires jobs within seconds; after this time something is wrong. */
const overdueMs = 120_000;
const maxNameLength = 60;

/** A finding for each job with a problem, else one that all are well; pure. `nowMs`: epoch milliseconds. */
export function scheduleFindings(jobs: readonly store.Schedule[], nowMs: number): Finding[] {
  const enabled = jobs.filter((job) => job.enabled);
  const found = enabled.flatMap((job) => scheduleFinding(job, nowMs));
  if (found.length > 0) return found;
  return [
    ok("schedules", enabled.length === 0 ? "no jobs" : `${enabled.length} jobs, none overdue, all last runs well`),
  ];
}

function scheduleFinding({ id, name, nextDue, lastRun }: store.Schedule, nowMs: number): Finding[] {
  const job = `the job "${oneLine(name, maxNameLength)}"`;
  if (nextDue !== null && nowMs - Date.parse(nextDue) > overdueMs) {
    return [
      error(
        "schedules",
        `${job} is overdue since ${localTime(nextDue)}`,
        "parley logs --service agent-core --since 10m",
      ),
    ];
  }
  if (lastRun === null) return [];
  const failed = lastRun.outcome === "failed" || lastRun.state === "dead";
  if (!failed && lastRun.outcome !== "missed") return [];
  const reason = lastRun.reason === null ? "" : ` (${oneLine(lastRun.reason, 120)})`;
  return [
    warning(
      "schedules",
      `the last run of ${job}, due ${localTime(lastRun.due)}, ${failed ? "failed" : "was missed"}${reason}`,
      `parley cron history ${id}   and, to run it now: parley cron run ${id}`,
    ),
  ];
}

export const scheduleChecks: readonly Check[] = [
  {
    id: "schedules",
    run: async (context) => {
      const { explicitUrl, home } = context;
      if (!explicitUrl && home.state === null) return []; // the check `supervisor` reports that it does not run
      try {
        return scheduleFindings(await context.jobs(), Date.now());
      } catch {
        return []; // the check `gateway` reports it
      }
    },
  },
];
