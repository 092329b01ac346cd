// `cron`: manages the agent's scheduled jobs. The store parses the schedules.
import { profileNames, store, WireError, type InputOf, type Schedule } from "@parley/contracts";
import { omitUndefined } from "@parley/kit";
import { CronInput, promptOf, scheduleOf, timeZoneOf } from "./cron-input.ts";
import { formatJob, formatRun, timeText } from "../schedule/format-job.ts";
import { admissionOfJob } from "../schedule/admission.ts";
import { localTool, type LocalContext, type LocalOutcome } from "./local-tool.ts";
import { parseAddress } from "./reply-address.ts";
import { operationId } from "./operation-id.ts";

/** Turns that may list and remove jobs: of the owner and of people they let in, and jobs and heartbeats on the owner's behalf. */
const mayLook = new Set(["owner", "user", "cron", "heartbeat"]);
const changing = new Set(["add", "update", "run"]);

export const cronTool = localTool({
  name: "cron",
  aliases: [],
  summary: "Schedule reminders and recurring work.",
  description:
    "Manage scheduled jobs. When a job is due, you receive its prompt as a message. Actions: add (needs schedule and prompt), list, update (id and the fields to change), remove, run (now), history. Use it for reminders and recurring work. People other than the owner have jobs of their own, which run and answer in the conversation where they were created.",
  input: CronInput,
  examples: [
    { action: "add", schedule: "at +20m", prompt: "Remind me of the tea.", name: "tea" },
    {
      action: "add",
      schedule: "0 9 * * 1-5",
      time_zone: "Europe/Berlin",
      prompt: "Summarize the news.",
      target: "own",
    },
    { action: "update", id: "tea", enabled: false },
  ],
  showExamples: true,
  class: "idempotent",
  readOnly: false,
  risk: "medium",
  effects: ["schedules"],
  run: (input, context) => carryOut(input, context),
});

const actions: Record<CronInput["action"], (input: CronInput, context: LocalContext) => Promise<LocalOutcome>> = {
  list,
  add,
  remove,
  update,
  run: runNow,
  history,
};

async function carryOut(input: CronInput, context: LocalContext): Promise<LocalOutcome> {
  const refused = refusal(input.action, context);
  if (refused !== undefined) return failed(refused);
  try {
    return await actions[input.action](input, context);
  } catch (error) {
    if (WireError.is(error, "INVALID_INPUT", "NOT_FOUND")) return failed(`Failed: ${error.message}.`);
    throw error;
  }
}

/** Only turns of the owner and of users may create jobs: not turns of guests, of jobs or of sub-agents. */
function refusal(action: CronInput["action"], { turn, settings }: LocalContext): string | undefined {
  if (turn.parent !== null)
    return "Sub-agents cannot use jobs. Report what should be scheduled; the agent you work for can schedule it.";
  if (!mayLook.has(turn.trust)) return "Only the owner and people they let in may list and create jobs.";
  if (turn.trust === "user") {
    return settings.permissions.user_jobs === 0 ? "Only the owner may list and create jobs here." : undefined;
  }
  if (turn.trust !== "owner" && changing.has(action)) {
    return "A job or a heartbeat may list and remove jobs, but not create, change or run them: the owner has to ask for it.";
  }
  return undefined;
}

/** For the store: whose jobs a user's turn may see and change. The store knows who wrote to the turn. */
function ownJobs({ turn }: LocalContext): { personOfTurn?: string } {
  return turn.trust === "user" ? { personOfTurn: turn.turnId } : {};
}

async function list({ limit = 50 }: CronInput, context: LocalContext): Promise<LocalOutcome> {
  const { jobs, more } = await context.leaderStore.request(store.scheduleList, {
    all: true,
    limit,
    ...ownJobs(context),
  });
  if (jobs.length === 0) return done("There are no jobs.");
  const now = Date.now();
  const lines = [
    ...jobs.map((job) => formatJob(job, now)),
    ...(more ? ["More jobs exist: raise `limit` to list them."] : []),
  ];
  return { status: "done", content: lines.join("\n"), untrusted: jobs.some(isTainted) };
}

async function add(input: CronInput, context: LocalContext): Promise<LocalOutcome> {
  const { leaderStore, settings, turn, step } = context;
  const schedule = scheduleOf(input);
  if (schedule === undefined)
    return failed("Failed: schedule: missing. For example: every 30m, at 2030-05-01T09:00, 0 9 * * 1-5.");
  const prompt = promptOf(input) ?? "";
  if (prompt.trim() === "")
    return failed("Failed: prompt: missing. For example: Check the build and tell me if it failed.");
  const unusable = elsewhere(input, context) ?? unknownProfile(input, context);
  if (unusable !== undefined) return failed(unusable);
  const delivery = await deliveryOf(input.deliver_to, context);
  if (typeof delivery === "string") return failed(delivery);
  const { deliverTo } = delivery;
  const ofUser = turn.trust === "user";
  const joinsMain = settings.session.policy === "singleton" && input.profile === undefined;
  const target = input.target ?? (joinsMain ? "main" : "own");
  const { job } = await leaderStore.request(store.scheduleCreate, {
    // A repeated request after a crash yields the same job: the store derives its id from the operation id.
    opId: operationId(step),
    name: input.name ?? prompt.replaceAll(/\s+/g, " ").slice(0, 60),
    schedule,
    timeZone: timeZoneOf(input) ?? settings.agent.time_zone,
    prompt,
    target,
    profile: input.profile ?? null,
    // Nobody reads a job's own thread, so its answers are sent here by default.
    deliverTo: deliverTo === undefined ? (target === "own" ? turn.replyTo : null) : deliverTo,
    overlap: input.overlap ?? "skip",
    missed: input.missed ?? "run_once",
    // Users see their jobs only through the agent: finished ones would stay for ever.
    afterRun: (input.delete_after_run ?? ofUser) ? "delete" : "disable",
    maxRuns: input.max_runs ?? null,
    keepRuns: 50,
    enabled: input.enabled ?? true,
    createdBy: { sessionId: turn.sessionId, turnId: turn.turnId, trust: ofUser ? "user" : "owner" },
    ...(turn.replyTo === null && !joinsMain && answersHere(input) ? { inConversation: true } : {}),
    ...(ofUser ? { personLimit: settings.permissions.user_jobs } : {}),
    tainted: context.tainted,
  });
  return done(`Added.\n${formatJob(job, Date.now())}`);
}

async function update(input: CronInput, context: LocalContext): Promise<LocalOutcome> {
  return withJob(input, context, async (job) => {
    const unusable = elsewhere(input, context) ?? unknownProfile(input, context);
    if (unusable !== undefined) return failed(unusable);
    const delivery = await deliveryOf(input.deliver_to, context);
    if (typeof delivery === "string") return failed(delivery);
    const { deliverTo } = delivery;
    const { delete_after_run: deletes } = input;
    const afterRun = deletes === undefined ? undefined : deletes ? ("delete" as const) : ("disable" as const);
    const change: InputOf<typeof store.scheduleUpdate>["change"] = omitUndefined({
      name: input.name,
      schedule: scheduleOf(input),
      timeZone: timeZoneOf(input),
      prompt: promptOf(input),
      target: input.target,
      profile: input.profile,
      deliverTo: context.turn.trust === "user" ? undefined : deliverTo,
      overlap: input.overlap,
      missed: input.missed,
      maxRuns: input.max_runs,
      afterRun,
      enabled: input.enabled,
    });
    if (Object.keys(change).length === 0)
      return failed("Failed: no field to change was given, for example schedule or prompt.");
    const changed = await context.leaderStore.request(store.scheduleUpdate, {
      id: job.id,
      change,
      tainted: context.tainted,
      ...ownJobs(context),
      ...(context.turn.trust === "user" ? { personLimit: context.settings.permissions.user_jobs } : {}),
    });
    return {
      status: "done",
      content: `Changed.\n${formatJob(changed.job, Date.now())}`,
      untrusted: isTainted(changed.job),
    };
  });
}

/** Whether the answers of a job belong to the conversation that asks for it. */
function answersHere({ target, profile, deliver_to: to }: CronInput): boolean {
  if (target === "main" || profile !== undefined) return false;
  return to === "here" || (to === undefined && target === undefined);
}

/** Why the job's profile cannot answer; undefined: it can, or none is named. */
function unknownProfile({ profile }: CronInput, { settings }: LocalContext): string | undefined {
  const known = profileNames(settings);
  if (profile === undefined || known.includes(profile)) return undefined;
  return `Failed: profile: there is no profile "${profile}". Available: ${known.join(", ")}.`;
}

/** Why a user's job cannot run or answer where the call says; undefined: the call says nothing about it. */
function elsewhere({ target, profile, deliver_to }: CronInput, { turn }: LocalContext): string | undefined {
  if (turn.trust !== "user") return undefined;
  const here = deliver_to === undefined || deliver_to === "here";
  const field = here
    ? profile === undefined
      ? target === undefined
        ? undefined
        : "target"
      : "profile"
    : "deliver_to";
  return field === undefined
    ? undefined
    : `Failed: ${field}: only the owner chooses it. This job runs and answers in this conversation.`;
}

/** Whether the displayed parts of a job are tainted: its prompt, or the answer of its last run. */
function isTainted({ tainted, lastRun }: Schedule): boolean {
  return tainted === true || lastRun?.turn?.tainted === true;
}

function remove(input: CronInput, context: LocalContext): Promise<LocalOutcome> {
  return withJob(input, context, async (job) => {
    await context.leaderStore.request(store.scheduleRemove, { id: job.id, ...ownJobs(context) });
    return done(`Removed ${job.id} "${job.name}".`);
  });
}

function runNow(input: CronInput, context: LocalContext): Promise<LocalOutcome> {
  return withJob(input, context, async (job) => {
    const { step, leaderStore } = context;
    // A repeated call yields the same run.
    await leaderStore.request(store.scheduleRun, {
      opId: operationId(step),
      id: job.id,
      ...ownJobs(context),
      ...omitUndefined({ admission: admissionOfJob(context.settings, job) }),
    });
    return done(`Queued ${job.id} "${job.name}"; its answer is sent to the job's delivery address.`);
  });
}

function history(input: CronInput, context: LocalContext): Promise<LocalOutcome> {
  return withJob(input, context, async (job) => {
    const { runs } = await context.leaderStore.request(store.scheduleGet, { id: job.id, runs: input.limit ?? 20 });
    if (runs.length === 0) {
      const next = job.nextDue === null ? "" : ` Next run: ${timeText(job.nextDue, job.timeZone, Date.now())}.`;
      return done(`${job.id} "${job.name}" has not been due yet.${next}`);
    }
    const content = runs.map((run) => formatRun(run, job.timeZone, Date.now())).join("\n");
    return { status: "done", content, untrusted: runs.some(({ turn }) => turn?.tainted === true) };
  });
}

async function withJob(
  input: CronInput,
  context: LocalContext,
  work: (job: Schedule) => Promise<LocalOutcome>,
): Promise<LocalOutcome> {
  const id = input.id ?? input.job_id ?? "";
  if (id === "") return failed(`Failed: id: missing. The action list shows the jobs and their ids.`);
  const { job } = await context.leaderStore.request(store.scheduleGet, { id, ...ownJobs(context) });
  return job === null
    ? failed(`Failed: id: there is no job "${id}", or several jobs have that name. The action list shows them.`)
    : work(job);
}

/** `undefined`: not given. `null`: where the owner wrote last. */
interface Delivery {
  deliverTo: Schedule["deliverTo"] | undefined;
}

/** Where the answers are sent, or an error text for the model. */
async function deliveryOf(text: string | undefined, context: LocalContext): Promise<Delivery | string> {
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
      const address = await parseAddress(text, context);
      if (typeof address !== "string") return { deliverTo: address };
      return `Failed: deliver_to: it is ${address}. \`here\` is this conversation.`;
    }
  }
}

function done(content: string): LocalOutcome {
  return { status: "done", content };
}

function failed(content: string): LocalOutcome {
  return { status: "failed", content };
}
