// Jobs in time: what shall come into a session when, kept in the store so that every due time becomes input exactly once; and the
// heartbeat, which is due by the clock alone.
import { z } from "zod";
import { request } from "../contract.ts";
import { ReplyAddressSchema } from "../inbound.ts";
import { exitReasons } from "../turns.ts";
import { Empty, Fenced } from "./shared.ts";

/** `main`: the owner's thread. `own`: a thread of the job's own, `cron:<id>`. */
export const scheduleTargets = ["main", "own"] as const;
/** What happens at a due time while the run before it still waits or works: left out, or put behind it. */
export const scheduleOverlaps = ["skip", "queue"] as const;
/** What happens to due times that nobody was there for: left out, or one run for all of them. */
export const scheduleMisses = ["skip", "run_once"] as const;
/** What becomes of a job that has nothing more to do. */
export const scheduleEnds = ["disable", "delete"] as const;

const ScheduleId = z.string().regex(/^[a-z0-9][a-z0-9-]{2,39}$/);

const fields = {
  name: z.string().min(1).max(120),
  /** `at <ISO 8601>`, `every <duration>` or `cron <5 or 6 fields>`; once kept, in the normal form. */
  schedule: z.string().min(1).max(200),
  /** IANA name: in which a cron pattern, and an `at` without an offset, is meant. */
  timeZone: z.string().min(1).max(64),
  prompt: z.string().min(1).max(20_000),
  target: z.enum(scheduleTargets),
  /** Where the answer goes. Null: to the conversation that the owner has used last when it is due. `nowhere`: it stays in its thread. */
  deliverTo: z.union([ReplyAddressSchema, z.literal("nowhere")]).nullable(),
  overlap: z.enum(scheduleOverlaps),
  missed: z.enum(scheduleMisses),
  afterRun: z.enum(scheduleEnds),
  /** Runs by the clock after which it ends; null: no limit. */
  maxRuns: z.number().int().min(1).nullable(),
  /** Due times that its history keeps. */
  keepRuns: z.number().int().min(1).max(1_000),
  enabled: z.boolean(),
};

const CreatorSchema = z.object({
  /** The session in which the agent was told to; null: a person, by the API. */
  sessionId: z.string().nullable(),
  turnId: z.string().nullable(),
  /** Only an owner's word makes a job. */
  trust: z.literal("owner"),
});

/** One due time and what became of it. */
export const ScheduleRunSchema = z.object({
  /** ISO 8601, UTC; of a run by hand the moment it was asked for. */
  due: z.string(),
  at: z.string(),
  manual: z.boolean(),
  /** `skipped`: the run before it was not over. `missed`: nobody was there. `failed`: no next time could be found. */
  outcome: z.enum(["fired", "skipped", "missed", "failed"]),
  reason: z.string().nullable(),
  inboxId: z.string().nullable(),
  /** Of its input; null where it has none. */
  state: z.enum(["queued", "claimed", "done", "dead", "cancelled"]).nullable(),
  /** Once it was claimed. The text is cut at 500 characters. */
  turn: z
    .object({
      turnId: z.string(),
      exitReason: z.enum(exitReasons).nullable(),
      text: z.string().nullable(),
      /** The turn was tainted: so is the text. */
      tainted: z.boolean().optional(),
    })
    .nullable(),
});
export type ScheduleRun = z.infer<typeof ScheduleRunSchema>;

export const ScheduleSchema = z.object({
  id: z.string(),
  ...fields,
  createdBy: CreatorSchema,
  /** A tainted turn made or changed it: its runs are tainted. */
  tainted: z.boolean().optional(),
  /** Runs by the clock so far. */
  runs: z.number().int(),
  /** ISO 8601, UTC; null: never again. */
  nextDue: z.string().nullable(),
  lastDue: z.string().nullable(),
  lastRun: ScheduleRunSchema.nullable(),
  createdAt: z.string(),
  updatedAt: z.string(),
});
export type Schedule = z.infer<typeof ScheduleSchema>;

export const scheduleCreate = request({
  subject: "store.schedule.create",
  server: "store",
  clients: ["agent-core", "channel-gateway"],
  doc: "Keep a job. INVALID_INPUT names the field that is wrong and shows a right one. A known id changes nothing (`created: false`).",
  input: z.object({
    opId: z.uuid(),
    /** Left out: the store makes one. */
    id: ScheduleId.optional(),
    ...fields,
    createdBy: CreatorSchema,
    /** A tainted turn makes it: its runs are tainted. Left out: a person, or an untainted turn. */
    tainted: z.boolean().optional(),
  }),
  output: z.object({ created: z.boolean(), job: ScheduleSchema }),
});

export const scheduleUpdate = request({
  subject: "store.schedule.update",
  server: "store",
  clients: ["agent-core", "channel-gateway"],
  doc: "Change a job; what is left out stays. A new schedule, zone, or being enabled counts from now. NOT_FOUND, INVALID_INPUT.",
  input: z.object({
    opId: z.uuid(),
    id: z.string(),
    change: z.object(fields).partial(),
    /** A tainted turn changes it: its runs are tainted from now on. Left out: not changed; a person's new prompt ends it. */
    tainted: z.boolean().optional(),
  }),
  output: z.object({ job: ScheduleSchema }),
});

export const scheduleRemove = request({
  subject: "store.schedule.remove",
  server: "store",
  clients: ["agent-core", "channel-gateway"],
  doc: "Forget a job and its history. Input that it has made already stays.",
  input: z.object({ opId: z.uuid(), id: z.string() }),
  output: z.object({ removed: z.boolean() }),
});

export const scheduleGet = request({
  subject: "store.schedule.get",
  server: "store",
  clients: ["agent-core", "channel-gateway"],
  doc: "One job by its id, or by its name where only one has it; null when there is none.",
  input: z.object({ id: z.string() }),
  output: z.object({ job: ScheduleSchema.nullable() }),
});

export const scheduleList = request({
  subject: "store.schedule.list",
  server: "store",
  clients: ["agent-core", "channel-gateway"],
  doc: "Jobs by id, a page at a time; without `all` only those that will run again.",
  input: z.object({
    all: z.boolean(),
    /** Only ids after this one. */
    after: z.string().optional(),
    limit: z.number().int().min(1).max(100),
  }),
  output: z.object({ jobs: z.array(ScheduleSchema), more: z.boolean() }),
});

export const scheduleHistory = request({
  subject: "store.schedule.history",
  server: "store",
  clients: ["agent-core", "channel-gateway"],
  doc: "The due times of a job and what became of them, newest first.",
  input: z.object({ id: z.string(), limit: z.number().int().min(1).max(200) }),
  output: z.object({ runs: z.array(ScheduleRunSchema) }),
});

export const scheduleRun = request({
  subject: "store.schedule.run",
  server: "store",
  clients: ["agent-core", "channel-gateway"],
  doc: "Run a job now, beside its schedule: its next due time and its count of runs stay. NOT_FOUND.",
  input: z.object({ opId: z.uuid(), id: z.string() }),
  output: z.object({ inboxId: z.string(), sessionId: z.string() }),
});

/** Jobs of one look, and of one transaction. */
export const maxDueJobs = 500;

const DueSchema = z.object({ id: z.string(), due: z.string() });

export const scheduleDue = request({
  subject: "store.schedule.due",
  server: "store",
  clients: ["agent-core"],
  doc: "Jobs whose time has come, the longest due first, and the moments at which others follow. The database's clock decides.",
  input: z.object({
    limit: z.number().int().min(1).max(maxDueJobs),
    /** How far ahead `upcoming` looks, in milliseconds. */
    horizonMs: z.number().int().min(0),
  }),
  output: z.object({
    now: z.string(),
    due: z.array(DueSchema),
    /** Each moment once, the nearest ones. */
    upcoming: z.array(z.string()),
  }),
});

export const scheduleFire = request({
  subject: "store.schedule.fire",
  server: "store",
  clients: ["agent-core"],
  doc: "Make due times input, and find the jobs' next ones, in one transaction. A due time that is none any more (somebody else had it, the job was changed) counts as `gone`.",
  input: z.object({ ...Fenced, due: z.array(DueSchema).min(1).max(maxDueJobs) }),
  output: z.object({
    fired: z.number().int(),
    skipped: z.number().int(),
    missed: z.number().int(),
    failed: z.number().int(),
    gone: z.number().int(),
  }),
});

export const heartbeatFire = request({
  subject: "store.heartbeat.fire",
  server: "store",
  clients: ["agent-core"],
  doc: "Put a heartbeat into the owner's thread, once a slot. Its answer goes to the conversation that the owner has used last.",
  input: z.object({
    ...Fenced,
    /** What it is unique by: the slot's beginning, or the request of a person. */
    slot: z.string().min(1).max(100),
    text: z.string().min(1),
    /** Nothing is put where the thread runs, waits for somebody, or has something queued. */
    skipWhenBusy: z.boolean(),
  }),
  output: z.object({ outcome: z.enum(["fired", "busy", "known"]), inboxId: z.string().nullable() }),
});

export const scheduleChanged = Empty;
