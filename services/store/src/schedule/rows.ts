// Mapping of job and run rows to wire objects.
import type { JobPerson, Schedule, ScheduleRun, Sender } from "@parley/contracts";
import { readableText } from "./recurrence.ts";

interface RunFields {
  due: string;
  at: string;
  manual: boolean;
  outcome: ScheduleRun["outcome"];
  reason: string | null;
  inbox_id: string | null;
  state: ScheduleRun["state"];
  turn_id: string | null;
  exit_reason: NonNullable<ScheduleRun["turn"]>["exitReason"];
  answer: string | null;
  run_tainted: boolean;
}

/** Columns of `schedule_runs r` with `runJoins`. */
export const runColumns =
  "r.due, r.at, r.manual, r.outcome, r.reason, r.inbox_id, ri.state, rt.id AS turn_id, rt.exit_reason, rt.answer, " +
  "EXISTS (SELECT FROM parley.messages rm WHERE rm.turn_id = rt.id AND rm.tainted) AS run_tainted";
export const runJoins =
  "LEFT JOIN parley.inbox ri ON ri.id = r.inbox_id LEFT JOIN parley.turns rt ON rt.id = ri.turn_id";

export type RunRow = RunFields;

const previewChars = 500;

export function runOf(row: RunRow): ScheduleRun {
  const answer = row.answer === null ? null : (JSON.parse(row.answer) as string);
  return {
    due: iso(row.due),
    at: iso(row.at),
    manual: row.manual,
    outcome: row.outcome,
    reason: row.reason,
    inboxId: row.inbox_id,
    state: row.state,
    turn:
      row.turn_id === null
        ? null
        : {
            turnId: row.turn_id,
            exitReason: row.exit_reason,
            text: answer?.slice(0, previewChars) ?? null,
            ...(row.run_tainted ? { tainted: true } : {}),
          },
  };
}

export interface JobRow {
  id: string;
  name: string;
  schedule: string;
  anchor: string;
  time_zone: string;
  prompt: string;
  target: Schedule["target"];
  deliver_to: string | null;
  overlap: Schedule["overlap"];
  missed: Schedule["missed"];
  after_run: Schedule["afterRun"];
  max_runs: number | null;
  keep_runs: number;
  enabled: boolean;
  runs: number;
  next_due: string | null;
  last_due: string | null;
  created_by: string;
  tainted: boolean;
  profile: string | null;
  person_key: string | null;
  person: string | null;
  person_route: string | null;
  created_at: string;
  updated_at: string;
}

export const jobColumns =
  "s.id, s.name, s.schedule, s.anchor, s.time_zone, s.prompt, s.target, s.deliver_to, s.overlap, s.missed, s.after_run, s.max_runs, s.keep_runs, s.enabled, s.runs, s.next_due, s.last_due, s.created_by, s.tainted, s.profile, s.person_key, s.person, s.person_route, s.created_at, s.updated_at";

/** Selects jobs, each with its newest run; append a WHERE clause. */
export const selectJobs = `
  SELECT ${jobColumns},
    (SELECT row_to_json(run) FROM (
       SELECT ${runColumns} FROM parley.schedule_runs r ${runJoins} WHERE r.job_id = s.id ORDER BY r.due DESC LIMIT 1
     ) AS run) AS last_run
  FROM parley.schedules s`;

/** Identifies a person. */
export function personKey({
  channel,
  account,
  contactId,
}: Pick<JobPerson, "channel" | "account" | "contactId">): string {
  return JSON.stringify([channel, account, contactId]);
}

/** From the stored sender; undefined: the owner's job. */
export function personOf(stored: string | null): JobPerson | undefined {
  if (stored === null) return undefined;
  const { channel, account, contact, direct } = JSON.parse(stored) as Sender;
  return { channel, account, contactId: contact.id, name: contact.name ?? null, direct: direct !== false };
}

export function jobOf(row: JobRow & { last_run: RunRow | null }): Schedule {
  const person = personOf(row.person);
  return {
    id: row.id,
    name: row.name,
    schedule: readableText(row.schedule),
    timeZone: row.time_zone,
    prompt: JSON.parse(row.prompt) as string,
    target: row.target,
    // A person's job has that of their conversation, which nobody chose for the job.
    ...(row.profile === null || person !== undefined ? {} : { profile: row.profile }),
    deliverTo: JSON.parse(row.deliver_to ?? "null") as Schedule["deliverTo"],
    overlap: row.overlap,
    missed: row.missed,
    afterRun: row.after_run,
    maxRuns: row.max_runs,
    keepRuns: row.keep_runs,
    enabled: row.enabled,
    createdBy: JSON.parse(row.created_by) as Schedule["createdBy"],
    ...(person === undefined ? (row.person_route === null ? {} : { route: row.person_route }) : { person }),
    ...(row.tainted ? { tainted: true } : {}),
    runs: row.runs,
    nextDue: row.next_due,
    lastDue: row.last_due,
    lastRun: row.last_run === null ? null : runOf(row.last_run),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** The driver does not convert times inside JSON. */
function iso(time: string): string {
  return new Date(time).toISOString();
}
