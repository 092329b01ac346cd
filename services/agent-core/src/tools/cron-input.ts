// The arguments of the tool `cron`, with hidden aliases for the names that models know from other agents. Pure.
import { z } from "zod";

export const CronInput = z.object({
  action: z
    .enum(["list", "add", "remove", "update", "run", "history"])
    .describe("What to do. run starts the job now, in addition to its schedule."),
  id: z.string().optional().describe("Id or name of the job; required except for list and add."),
  job_id: z.string().optional().describe("Alias of `id`.").meta({ modelSchema: "hidden" }),
  name: z.string().max(120).optional().describe("Short name of the job, for people."),
  schedule: z
    .string()
    .optional()
    .describe(
      "When the job runs: `at 2030-05-01T09:00`, `at +20m`, `every 30m`, `every 1h30m`, or a cron pattern of 5 or 6 fields such as `0 9 * * 1-5`.",
    ),
  every_seconds: z
    .number()
    .int()
    .positive()
    .optional()
    .describe("Seconds between runs; alternative to `schedule`.")
    .meta({ modelSchema: "hidden" }),
  cron_expr: z.string().optional().describe("Cron pattern; alternative to `schedule`.").meta({ modelSchema: "hidden" }),
  at: z
    .string()
    .optional()
    .describe("Time of a single run; alternative to `schedule`.")
    .meta({ modelSchema: "hidden" }),
  time_zone: z.string().optional().describe("IANA name such as Europe/Berlin. Default: the agent's time zone."),
  tz: z.string().optional().describe("Alias of `time_zone`.").meta({ modelSchema: "hidden" }),
  prompt: z
    .string()
    .max(20_000)
    .optional()
    .describe(
      "The message you receive when the job is due. Include all context: nothing else of this conversation is added.",
    ),
  message: z.string().max(20_000).optional().describe("Alias of `prompt`.").meta({ modelSchema: "hidden" }),
  target: z
    .enum(["main", "own"])
    .optional()
    .describe("main: the job runs in the owner's thread, with its history. own: the job has its own thread."),
  profile: z
    .string()
    .optional()
    .describe("The profile that answers the job, in its own thread.")
    .meta({ modelSchema: "name_only" }),
  deliver_to: z
    .string()
    .optional()
    .describe(
      "Where the answer is sent: `here` (this conversation), channel:account:conversation, `default` (where the owner wrote last), or `nowhere`.",
    ),
  overlap: z
    .enum(["skip", "queue"])
    .optional()
    .describe("If the previous run is not finished: skip this run, or queue it."),
  missed: z
    .enum(["skip", "run_once"])
    .optional()
    .describe("For due times missed while Parley was not running: skip them, or run once."),
  max_runs: z.number().int().min(1).optional().describe("The job ends after this number of runs."),
  delete_after_run: z
    .boolean()
    .optional()
    .describe("true: delete the job after its last run. Otherwise it is kept, disabled."),
  enabled: z.boolean().optional().describe("false: pause the job."),
  limit: z.number().int().min(1).max(100).optional().describe("For list and history: maximum number of entries."),
});
export type CronInput = z.infer<typeof CronInput>;

/** The schedule in the syntax of `schedule`, from the first of its four arguments that is set; undefined without any. */
export function scheduleOf({ schedule, every_seconds, cron_expr, at }: CronInput): string | undefined {
  if (schedule !== undefined) return schedule;
  if (every_seconds !== undefined) return `every ${every_seconds}s`;
  if (cron_expr !== undefined) return `cron ${cron_expr}`;
  return at === undefined ? undefined : `at ${at}`;
}

/** The message of the job, from `prompt` or its alias; undefined without either. */
export function promptOf({ prompt, message }: CronInput): string | undefined {
  return prompt ?? message;
}

/** The IANA time zone, from `time_zone` or its alias; undefined without either. */
export function timeZoneOf({ time_zone, tz }: CronInput): string | undefined {
  return time_zone ?? tz;
}
