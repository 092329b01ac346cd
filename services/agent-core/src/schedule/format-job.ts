// Formats jobs and runs for the model, with times in the job's time zone and relative to now; pure.
import type { JobPerson, Schedule, ScheduleRun } from "@parley/contracts";
import { pluralize } from "@parley/kit";
import { localTime } from "../prompt/message-header.ts";
import { formatAddress } from "../prompt/message-header.ts";

const steps: [string, number][] = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
];

/** `in 3 h 20 min`, `5 min ago`; at most two units. */
export function relative(at: number, now: number): string {
  let seconds = Math.round(Math.abs(at - now) / 1_000);
  const words: string[] = [];
  for (const [unit, size] of steps) {
    const count = Math.floor(seconds / size);
    if (count > 0 && words.length < 2) words.push(`${count} ${unit}`);
    seconds -= count * size;
  }
  if (words.length === 0) words.push(`${seconds} s`);
  return at >= now ? `in ${words.join(" ")}` : `${words.join(" ")} ago`;
}

/** `Mon 2026-11-23 09:00:00 Europe/Berlin (in 1 d 7 h)`. */
export function timeText(iso: string, timeZone: string, now: number): string {
  return `${localTime(timeZone, iso, "second")} (${relative(Date.parse(iso), now)})`;
}

const promptChars = 120;

/** A job as a few lines of text. */
export function formatJob(job: Schedule, now: number): string {
  const next =
    job.nextDue === null
      ? job.enabled
        ? "no further run"
        : "disabled or finished"
      : `next ${timeText(job.nextDue, job.timeZone, now)}`;
  const prompt = job.prompt.replaceAll(/\s+/g, " ");
  const answer =
    job.deliverTo === null
      ? ""
      : `, answers go to ${job.deliverTo === "nowhere" ? "nobody" : formatAddress(job.deliverTo)}`;
  const runs = job.maxRuns === null ? pluralize(job.runs, "run") : `${job.runs} of ${job.maxRuns} runs`;
  const thread =
    job.person !== undefined
      ? `set by ${personText(job.person)}, in their conversation`
      : job.target === "main"
        ? "in the owner's thread"
        : job.route === undefined
          ? `in its own thread cron:${job.id}`
          : `in the conversation ${job.route}`;
  return [
    `${job.id} "${job.name}": ${job.schedule} (${job.timeZone}); ${next}`,
    `  ${thread}${job.profile == null ? "" : `, profile ${job.profile}`}${answer}; ${runs}; overlap ${job.overlap}, missed ${job.missed}`,
    `  prompt: ${prompt.length > promptChars ? `${prompt.slice(0, promptChars)}…` : prompt}`,
    ...(job.lastRun === null ? [] : [`  last run: ${formatRun(job.lastRun, job.timeZone, now)}`]),
  ].join("\n");
}

function personText({ name, contactId, channel, account }: JobPerson): string {
  return `${(name ?? contactId).replaceAll(/\s+/g, " ").slice(0, 80)} (${contactId} on ${channel}:${account})`;
}

/** One run as a line of text. */
export function formatRun(run: ScheduleRun, timeZone: string, now: number): string {
  const words = [timeText(run.due, timeZone, now), run.manual ? "started manually" : run.outcome];
  if (run.reason !== null) words.push(run.reason);
  if (run.state !== null && run.turn?.exitReason == null) words.push(run.state === "claimed" ? "running" : run.state);
  if (run.turn?.exitReason != null) words.push(run.turn.exitReason);
  if (run.turn?.text != null) words.push(JSON.stringify(run.turn.text.slice(0, promptChars)));
  return words.join(", ");
}
