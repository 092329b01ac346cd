// Formats scheduled jobs for people. Pure.

import type { Schedule, ScheduleRun } from "@parley/contracts";

import type { Paint } from "../io.ts";
import { localTime } from "../sessions/text.ts";
import { duration, oneLine, table } from "../text.ts";

export function jobsTable(jobs: readonly Schedule[], paint: Paint, now: number): string {
  if (jobs.length === 0) return "There are no jobs yet. Add one: parley cron add 'every 1h' 'look at the mail'";
  const head = ["ID", "NAME", "SCHEDULE", "NEXT", "THREAD", "RUNS", "LAST"].map((cell) => paint("dim", cell));
  const rows = jobs.map((job) => [
    job.id,
    oneLine(job.name, 30),
    oneLine(`${job.schedule.replace(/^cron /, "")} ${job.timeZone}`, 40),
    nextText(job, now),
    job.target,
    job.maxRuns === null ? String(job.runs) : `${job.runs}/${job.maxRuns}`,
    job.lastRun === null ? "-" : outcomeText(job.lastRun),
  ]);
  return table([head, ...rows]);
}

/** `2026-11-23 09:00 (in 7h)`, in the reader's own zone. */
export function nextText({ nextDue, enabled }: Schedule, now: number): string {
  if (nextDue === null) return enabled ? "never" : "off";
  const seconds = (Date.parse(nextDue) - now) / 1_000;
  return `${localTime(nextDue)} (${seconds < 0 ? "now" : `in ${duration(seconds)}`})`;
}

export function runsTable(runs: readonly ScheduleRun[], paint: Paint): string {
  const head = ["DUE", "OUTCOME", "ANSWER"].map((cell) => paint("dim", cell));
  const rows = runs.map((run) => [
    localTime(run.due),
    `${outcomeText(run)}${run.manual ? " (by hand)" : ""}`,
    oneLine(run.turn?.text ?? run.reason ?? "", 80),
  ]);
  return table([head, ...rows]);
}

function outcomeText({ outcome, state, turn }: ScheduleRun): string {
  if (outcome !== "fired" || state === null) return outcome;
  if (turn?.exitReason != null) return turn.exitReason;
  return state === "claimed" ? "running" : state;
}
