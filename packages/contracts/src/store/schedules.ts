// Jobs: input that is due at given times, stored so that every due time becomes input exactly once. Also the heartbeat, whose due times
// follow from the clock.
import { z } from "zod";
import { admissions } from "../channels/entry.ts";
import { ReplyAddressSchema } from "../inbound.ts";
import { exitReasons } from "../turns.ts";
import { Empty, Fenced, storeRequest } from "./shared.ts";

/** `main`: the owner's thread. `own`: the job's own thread, `cron:<id>`; with a profile `cron:<id>@<profile>`. */
export const scheduleTargets = ["main", "own"] as const;
/** What happens at a due time while the previous run is queued or running: it is skipped, or queued after that run. */
export const scheduleOverlaps = ["skip", "queue"] as const;
/** What happens to due times during downtime: all are skipped, or one run replaces them all. */
export const scheduleMisses = ["skip", "run_once"] as const;
/** What happens to a job after its last run. */
export const scheduleEnds = ["disable", "delete"] as const;

const ScheduleId = z.string().regex(/^[a-z0-9][a-z0-9-]{2,39}$/);

const fields = {
  name: z.string().min(1).max(120),
  /** `at <ISO 8601>`, `every <duration>` or `cron <5 or 6 fields>`; stored in normalized form. */
  schedule: z.string().min(1).max(200),
  /** IANA time zone of a cron pattern and of an `at` without an offset. */
  timeZone: z.string().min(1).max(64),
  prompt: z.string().min(1).max(20_000),
  target: z.enum(scheduleTargets),
  /** The profile that answers, in a thread of the job's own. Null or omitted: the agent itself. */
  profile: z.string().min(1).max(64).nullable().optional(),
  /** Destination of the answer. Null: the conversation that the owner used last before the due time. `nowhere`: it stays in its thread. */
  deliverTo: z.union([ReplyAddressSchema, z.literal("nowhere")]).nullable(),
  overlap: z.enum(scheduleOverlaps),
  missed: z.enum(scheduleMisses),
  afterRun: z.enum(scheduleEnds),
  /** Number of scheduled runs after which it ends; null: no limit. */
  maxRuns: z.number().int().min(1).nullable(),
  /** Number of due times that its history keeps. */
  keepRuns: z.number().int().min(1).max(1_000),
  enabled: z.boolean(),
};

const CreatorSchema = z.object({
  /** The session in which the agent created it; null: a person created it through the API. */
  sessionId: z.string().nullable(),
  turnId: z.string().nullable(),
  /** `user`: a person whom the owner let in; the job is theirs. */
  trust: z.enum(["owner", "user"]),
});

/** The person whom a job belongs to. */
export const JobPersonSchema = z.object({
  channel: z.string(),
  account: z.string(),
  contactId: z.string(),
  name: z.string().nullable(),
  /** They created it in a conversation with them alone. */
  direct: z.boolean(),
});
export type JobPerson = z.infer<typeof JobPersonSchema>;

/**
 * Omitted: any job. Otherwise only jobs of the person whose messages this turn answers; INVALID_INPUT if the turn answers several people,
 * or for a change by a turn that a job started.
 */
const personOfTurn = z.uuid().optional();

/** What the settings say about a job's person. Omitted: the settings that the store keeps decide. */
const admission = z.enum(admissions).optional();

/** One due time and its outcome. */
export const ScheduleRunSchema = z.object({
  /** ISO 8601, UTC; for a manual run, the time of the request. */
  due: z.string(),
  at: z.string(),
  manual: z.boolean(),
  /** `skipped`: the previous run had not ended. `missed`: no leader was running. `failed`: the next due time could not be computed. */
  outcome: z.enum(["fired", "skipped", "missed", "failed"]),
  reason: z.string().nullable(),
  inboxId: z.string().nullable(),
  /** State of its input; null: no input. */
  state: z.enum(["queued", "claimed", "done", "dead", "cancelled"]).nullable(),
  /** Present after the input was claimed. The text is truncated to 500 characters. */
  turn: z
    .object({
      turnId: z.string(),
      exitReason: z.enum(exitReasons).nullable(),
      text: z.string().nullable(),
      /** The turn was tainted, and so is the text. */
      tainted: z.boolean().optional(),
    })
    .nullable(),
});
export type ScheduleRun = z.infer<typeof ScheduleRunSchema>;

export const ScheduleSchema = z.object({
  id: z.string(),
  ...fields,
  createdBy: CreatorSchema,
  /** The route of the conversation in which it runs and answers, with `target` `own`. Omitted: `target` and `profile` decide. */
  route: z.string().optional(),
  /** Their job: it runs with their rights, in the conversation where they created it. Omitted: the owner's. */
  person: JobPersonSchema.optional(),
  /** A tainted turn created or changed it: its runs are tainted. */
  tainted: z.boolean().optional(),
  /** Scheduled runs so far. */
  runs: z.number().int(),
  /** ISO 8601, UTC; null: no further run. */
  nextDue: z.string().nullable(),
  lastDue: z.string().nullable(),
  lastRun: ScheduleRunSchema.nullable(),
  createdAt: z.string(),
  updatedAt: z.string(),
});
export type Schedule = z.infer<typeof ScheduleSchema>;

export const scheduleCreate = storeRequest({
  subject: "store.schedule.create",
  clients: ["agent-core", "channel-gateway"],
  doc: "Create a job. INVALID_INPUT names the invalid field and shows a valid example. A known id changes nothing (`created: false`). With `createdBy.trust` `user` it belongs to the person whose messages the turn answers, and runs in that conversation.",
  input: z.object({
    opId: z.uuid(),
    /** Omitted: the store generates one. */
    id: ScheduleId.optional(),
    ...fields,
    createdBy: CreatorSchema,
    /** It runs in the conversation of the session that created it, because that has no address for answers. A new target or profile ends this. */
    inConversation: z.boolean().optional(),
    /** Maximum upcoming jobs of a person other than the owner. Omitted: no limit. */
    personLimit: z.number().int().min(0).optional(),
    /** A tainted turn creates it: its runs are tainted. Omitted: a person, or an untainted turn. */
    tainted: z.boolean().optional(),
  }),
  output: z.object({ created: z.boolean(), job: ScheduleSchema }),
});

export const scheduleUpdate = storeRequest({
  subject: "store.schedule.update",
  clients: ["agent-core", "channel-gateway"],
  doc: "Change a job; absent fields stay unchanged. A new schedule, a new time zone or enabling the job takes effect from now. The conversation of a person's job does not change. NOT_FOUND, INVALID_INPUT.",
  input: z.object({
    opId: z.uuid(),
    id: z.string(),
    change: z.object(fields).partial(),
    personOfTurn,
    personLimit: z.number().int().min(0).optional(),
    /** A tainted turn changes it: its runs are tainted from now on. Omitted: unchanged; a person's new prompt clears it. */
    tainted: z.boolean().optional(),
  }),
  output: z.object({ job: ScheduleSchema }),
});

export const scheduleRemove = storeRequest({
  subject: "store.schedule.remove",
  clients: ["agent-core", "channel-gateway"],
  doc: "Delete a job and its history. Input that it has already created stays.",
  input: z.object({ opId: z.uuid(), id: z.string(), personOfTurn }),
  output: z.object({ removed: z.boolean() }),
});

export const scheduleGet = storeRequest({
  subject: "store.schedule.get",
  clients: ["agent-core", "channel-gateway"],
  doc: "Get one job by its id, or by its name if unique, null when there is none; and its due times with their outcomes, newest first.",
  input: z.object({
    id: z.string(),
    /** Maximum due times of its history; omitted: none. */
    runs: z.number().int().min(0).max(200).optional(),
    personOfTurn,
  }),
  output: z.object({ job: ScheduleSchema.nullable(), runs: z.array(ScheduleRunSchema) }),
});

export const scheduleList = storeRequest({
  subject: "store.schedule.list",
  clients: ["agent-core", "channel-gateway"],
  doc: "List jobs sorted by id, one page at a time; without `all` only those that will run again.",
  input: z.object({
    all: z.boolean(),
    /** Only ids after this one. */
    after: z.string().optional(),
    limit: z.number().int().min(1).max(100),
    personOfTurn,
  }),
  output: z.object({ jobs: z.array(ScheduleSchema), more: z.boolean() }),
});

export const scheduleRun = storeRequest({
  subject: "store.schedule.run",
  clients: ["agent-core", "channel-gateway"],
  doc: "Run a job now, outside its schedule: its next due time and its run count do not change. NOT_FOUND; INVALID_INPUT when its person is no longer let in.",
  input: z.object({ opId: z.uuid(), id: z.string(), personOfTurn, admission }),
  output: z.object({ inboxId: z.string(), sessionId: z.string() }),
});

/** Maximum jobs of one poll and of one transaction. */
export const maxDueJobs = 500;

const DueSchema = z.object({ id: z.string(), due: z.string() });
/** A due job, with its person unless it is the owner's. */
const DueJobSchema = DueSchema.extend({ person: JobPersonSchema.optional() });

export const scheduleDue = storeRequest({
  subject: "store.schedule.due",
  clients: ["agent-core"],
  doc: "List due jobs, the longest overdue first, and the next due times of others, by the database's clock.",
  input: z.object({
    limit: z.number().int().min(1).max(maxDueJobs),
    /** How far `upcoming` reaches into the future, in milliseconds. */
    horizonMs: z.number().int().min(0),
  }),
  output: z.object({
    now: z.string(),
    due: z.array(DueJobSchema),
    /** The nearest due times, without duplicates. */
    upcoming: z.array(z.string()),
  }),
});

export const scheduleFire = storeRequest({
  subject: "store.schedule.fire",
  clients: ["agent-core"],
  doc: "Turn due times into input and compute the jobs' next due times, in one transaction. A due time that no longer exists (already fired, or the job was changed) counts as `gone`. The job of a person who is no longer let in is skipped and disabled.",
  input: z.object({ ...Fenced, due: z.array(DueSchema.extend({ admission })).min(1).max(maxDueJobs) }),
  output: z.object({
    fired: z.number().int(),
    skipped: z.number().int(),
    missed: z.number().int(),
    failed: z.number().int(),
    gone: z.number().int(),
  }),
});

export const heartbeatFire = storeRequest({
  subject: "store.heartbeat.fire",
  clients: ["agent-core"],
  doc: "Enqueue a heartbeat in the owner's thread, once per slot. Its answer goes to the conversation that the owner used last.",
  input: z.object({
    ...Fenced,
    /** The key that makes it unique: the slot's beginning, or a person's request. */
    slot: z.string().min(1).max(100),
    text: z.string().min(1),
    /** Nothing is enqueued while the thread has a running or parked turn or queued input. */
    skipWhenBusy: z.boolean(),
  }),
  output: z.object({ outcome: z.enum(["fired", "busy", "known"]), inboxId: z.string().nullable() }),
});

export const scheduleChanged = Empty;
