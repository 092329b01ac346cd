// `cron`: the agent's jobs in time. It understands the arguments of every design it stands for; what a schedule means is the
// store's business.
import { newId, store, WireError, type InputOf, type Schedule } from "@parley/contracts";
import { z } from "zod";
import { jobText, runText, timeText } from "../schedule/text.ts";
import { localTool, type LocalContext, type LocalOutcome } from "./local-tool.ts";
import { addressNamed } from "./address.ts";
import { operationOf } from "./operation.ts";

const Input = z.object({
  action: z
    .enum(["list", "add", "remove", "update", "run", "history"])
    .describe("What to do; run is now, beside the schedule."),
  id: z.string().optional().describe("The job, by its id or its name; for all but list and add."),
  job_id: z.string().optional().describe("Another name for `id`."),
  name: z.string().max(120).optional().describe("A few words for people."),
  schedule: z
    .string()
    .optional()
    .describe(
      "When: `at 2030-05-01T09:00`, `at +20m`, `every 30m`, `every 1h30m`, or a cron pattern of 5 or 6 fields such as `0 9 * * 1-5`.",
    ),
  every_seconds: z.number().int().positive().optional().describe("Another way to say `every`."),
  cron_expr: z.string().optional().describe("Another way to say a cron pattern."),
  at: z.string().optional().describe("Another way to say `at`."),
  time_zone: z.string().optional().describe("IANA name such as Europe/Berlin; left out: the agent's."),
  tz: z.string().optional().describe("Another name for `time_zone`."),
  prompt: z.string().max(20_000).optional().describe("What you are told when it is due. You see nothing else of now."),
  message: z.string().max(20_000).optional().describe("Another name for `prompt`."),
  target: z
    .enum(["main", "own"])
    .optional()
    .describe("main: into the owner's thread, with all it knows. own: a thread of the job's own."),
  deliver_to: z
    .string()
    .optional()
    .describe(
      "Where the answer goes: `here`, channel:account:conversation, `default` (where the owner wrote last), or `nowhere`.",
    ),
  overlap: z.enum(["skip", "queue"]).optional().describe("While the run before still works: leave out, or wait."),
  missed: z.enum(["skip", "run_once"]).optional().describe("Times nobody was there for: leave out, or run once."),
  max_runs: z.number().int().min(1).optional().describe("It ends after so many runs."),
  delete_after_run: z.boolean().optional().describe("Forget it when it is over; else it stays, disabled."),
  enabled: z.boolean().optional().describe("false: pause."),
  limit: z.number().int().min(1).max(100).optional().describe("list, history: at most so many."),
});
type Input = z.infer<typeof Input>;

/** Turns that may look at jobs and end them: an owner's, and what jobs and heartbeats do in an owner's name. */
const mayLook = new Set(["owner", "cron", "heartbeat"]);
const changing = new Set(["add", "update", "run"]);

export const cronTool = localTool({
  name: "cron",
  aliases: [],
  summary: "Schedule prompts for yourself: once, repeatedly, or by a cron pattern.",
  description:
    "Jobs in time. When one is due its prompt comes to you as a message. action add (schedule, prompt), list, update (id and what changes), remove, run (now), history. Use it for reminders and for regular work.",
  input: Input,
  examples: [
    { action: "add", schedule: "at +20m", prompt: "Remind me of the tea.", name: "tea" },
    { action: "add", schedule: "0 9 * * 1-5", time_zone: "Europe/Berlin", prompt: "Sum up the news.", target: "own" },
    { action: "update", id: "tea", enabled: false },
  ],
  showExamples: true,
  class: "idempotent",
  readOnly: false,
  risk: "medium",
  effects: ["schedules"],
  run: (input, context) => carryOut(input, context),
});

async function carryOut(input: Input, context: LocalContext): Promise<LocalOutcome> {
  const refused = refusal(input.action, context);
  if (refused !== undefined) return failed(refused);
  try {
    return await act(input, context);
  } catch (error) {
    if (WireError.is(error, "INVALID_INPUT", "NOT_FOUND")) return failed(`Not done: ${error.message}.`);
    throw error;
  }
}

/** Only an owner's word makes jobs: neither a guest's, nor a job's own, nor a sub-agent's. */
function refusal(action: Input["action"], { turn }: LocalContext): string | undefined {
  if (turn.parent !== null)
    return "Sub-agents have no jobs. Report what should be scheduled, and the agent you work for can do it.";
  if (!mayLook.has(turn.trust)) return "Only the owner may see and make jobs here.";
  if (turn.trust !== "owner" && changing.has(action)) {
    return "A job or a heartbeat may list and remove jobs, but make and run none: the owner has to ask for it.";
  }
  return undefined;
}

function act(input: Input, context: LocalContext): Promise<LocalOutcome> {
  switch (input.action) {
    case "list":
      return list(input, context);
    case "add":
      return add(input, context);
    case "remove":
      return remove(input, context);
    case "update":
      return update(input, context);
    case "run":
      return runNow(input, context);
    case "history":
      return history(input, context);
    default:
      return input.action satisfies never;
  }
}

async function list({ limit = 50 }: Input, { bus }: LocalContext): Promise<LocalOutcome> {
  const { jobs, more } = await bus.request(store.scheduleList, { all: true, limit });
  if (jobs.length === 0) return done("There are no jobs.");
  const now = Date.now();
  const lines = [...jobs.map((job) => jobText(job, now)), ...(more ? ["There are more."] : [])];
  return { status: "done", content: lines.join("\n"), untrusted: jobs.some(isTainted) };
}

async function add(input: Input, context: LocalContext): Promise<LocalOutcome> {
  const { bus, settings, turn, step } = context;
  const schedule = scheduleOf(input);
  if (schedule === undefined)
    return failed("Not done: schedule: it is missing. For example: every 30m, at 2030-05-01T09:00, 0 9 * * 1-5.");
  const prompt = promptOf(input) ?? "";
  if (prompt.trim() === "")
    return failed("Not done: prompt: it is missing. For example: Look at the build and tell me if it is red.");
  const delivery = deliveryOf(input.deliver_to, context);
  if (typeof delivery === "string") return failed(delivery);
  const { deliverTo } = delivery;
  const target = input.target ?? (settings.session.policy === "singleton" ? "main" : "own");
  const { job } = await bus.request(store.scheduleCreate, {
    // Asked for again after a crash it is the same job, whose id the store makes of this.
    opId: operationOf(step),
    name: input.name ?? prompt.replaceAll(/\s+/g, " ").slice(0, 60),
    schedule,
    timeZone: zoneOf(input) ?? settings.agent.time_zone,
    prompt,
    target,
    // A thread of its own is read by nobody: its answers come here unless something else was said.
    deliverTo: deliverTo === undefined ? (target === "own" ? turn.replyTo : null) : deliverTo,
    overlap: input.overlap ?? "skip",
    missed: input.missed ?? "run_once",
    afterRun: input.delete_after_run === true ? "delete" : "disable",
    maxRuns: input.max_runs ?? null,
    keepRuns: 50,
    enabled: input.enabled ?? true,
    createdBy: { sessionId: turn.sessionId, turnId: turn.turnId, trust: "owner" },
    tainted: context.tainted,
  });
  return done(`Added.\n${jobText(job, Date.now())}`);
}

async function update(input: Input, context: LocalContext): Promise<LocalOutcome> {
  return withJob(input, context, async (job) => {
    const delivery = deliveryOf(input.deliver_to, context);
    if (typeof delivery === "string") return failed(delivery);
    const { deliverTo } = delivery;
    const change: InputOf<typeof store.scheduleUpdate>["change"] = Object.fromEntries(
      Object.entries({
        name: input.name,
        schedule: scheduleOf(input),
        timeZone: zoneOf(input),
        prompt: promptOf(input),
        target: input.target,
        deliverTo,
        overlap: input.overlap,
        missed: input.missed,
        maxRuns: input.max_runs,
        afterRun: input.delete_after_run === undefined ? undefined : input.delete_after_run ? "delete" : "disable",
        enabled: input.enabled,
      }).filter(([, value]) => value !== undefined),
    );
    if (Object.keys(change).length === 0)
      return failed("Not done: nothing was named that shall change, for example schedule or prompt.");
    const changed = await context.bus.request(store.scheduleUpdate, {
      opId: newId(),
      id: job.id,
      change,
      tainted: context.tainted,
    });
    return {
      status: "done",
      content: `Changed.\n${jobText(changed.job, Date.now())}`,
      untrusted: isTainted(changed.job),
    };
  });
}

/** Whether what is shown of a job is tainted: its text, or the answer of its last run. */
function isTainted({ tainted, lastRun }: Schedule): boolean {
  return tainted === true || lastRun?.turn?.tainted === true;
}

function remove(input: Input, context: LocalContext): Promise<LocalOutcome> {
  return withJob(input, context, async (job) => {
    await context.bus.request(store.scheduleRemove, { opId: newId(), id: job.id });
    return done(`Removed ${job.id} "${job.name}".`);
  });
}

function runNow(input: Input, context: LocalContext): Promise<LocalOutcome> {
  return withJob(input, context, async (job) => {
    const { step, bus } = context;
    // The same call again is the same run.
    await bus.request(store.scheduleRun, { opId: operationOf(step), id: job.id });
    return done(`${job.id} "${job.name}" is put in line now; its answer goes where the job's answers go.`);
  });
}

function history(input: Input, context: LocalContext): Promise<LocalOutcome> {
  return withJob(input, context, async (job) => {
    const { runs } = await context.bus.request(store.scheduleHistory, { id: job.id, limit: input.limit ?? 20 });
    if (runs.length === 0) {
      const next = job.nextDue === null ? "" : ` The next time is ${timeText(job.nextDue, job.timeZone, Date.now())}.`;
      return done(`${job.id} "${job.name}" has not been due yet.${next}`);
    }
    const content = runs.map((run) => runText(run, job.timeZone, Date.now())).join("\n");
    return { status: "done", content, untrusted: runs.some(({ turn }) => turn?.tainted === true) };
  });
}

async function withJob(
  input: Input,
  { bus }: LocalContext,
  work: (job: Schedule) => Promise<LocalOutcome>,
): Promise<LocalOutcome> {
  const id = input.id ?? input.job_id ?? "";
  if (id === "") return failed(`Not done: id: it is missing; action list shows the jobs and their ids.`);
  const { job } = await bus.request(store.scheduleGet, { id });
  return job === null
    ? failed(`Not done: id: there is no job "${id}", or several have that name; action list shows them.`)
    : work(job);
}

/** The schedule in whichever way it was said. */
function scheduleOf({ schedule, every_seconds, cron_expr, at }: Input): string | undefined {
  if (schedule !== undefined) return schedule;
  if (every_seconds !== undefined) return `every ${every_seconds}s`;
  if (cron_expr !== undefined) return `cron ${cron_expr}`;
  return at === undefined ? undefined : `at ${at}`;
}

function promptOf({ prompt, message }: Input): string | undefined {
  return prompt ?? message;
}

function zoneOf({ time_zone, tz }: Input): string | undefined {
  return time_zone ?? tz;
}

/** Undefined where nothing was said; null: where the owner writes. */
interface Delivery {
  deliverTo: Schedule["deliverTo"] | undefined;
}

/** Where the answers go, or in words why nothing can be sent there. */
function deliveryOf(text: string | undefined, context: LocalContext): Delivery | string {
  switch (text) {
    case undefined:
      return { deliverTo: undefined };
    case "default":
      return { deliverTo: null };
    case "none":
    case "nowhere":
      return { deliverTo: "nowhere" };
    case "here":
      return { deliverTo: context.turn.replyTo };
    default: {
      const address = addressNamed(text, context);
      if (typeof address !== "string") return { deliverTo: address };
      return `Not done: deliver_to: it is ${address}. \`here\` is this conversation.`;
    }
  }
}

function done(content: string): LocalOutcome {
  return { status: "done", content };
}

function failed(content: string): LocalOutcome {
  return { status: "failed", content };
}
