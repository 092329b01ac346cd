// Scheduled jobs and the heartbeat.
import {
  admissionOf,
  controlHeartbeat,
  operations,
  profileNames,
  store,
  type Admission,
  type Schedule,
} from "@parley/contracts";
import { omitUndefined } from "@parley/kit";
import { implement, OperationError, type OperationCall } from "./operation.ts";

async function jobOf({ deps }: OperationCall, id: string): Promise<Schedule> {
  const { job } = await deps.bus.request(store.scheduleGet, { id });
  if (job !== null) return job;
  throw new OperationError("not_found", `there is no job "${id}", or several jobs have this name`);
}

/** Throws OperationError when the job's answers could not be sent. */
function checkAddress({ deps }: OperationCall, deliverTo: Schedule["deliverTo"] | undefined): void {
  if (typeof deliverTo === "object" && deliverTo !== null) deps.channels.require(deliverTo);
}

/** What the settings say about the job's person; undefined: the owner's job. Without the account nobody is let in. */
function admissionOfPerson({ deps }: OperationCall, { person }: Schedule): Admission | undefined {
  if (person === undefined) return undefined;
  const policy = deps.channels.peopleOf(person);
  return policy === null ? "never" : admissionOf(policy, person);
}

/** Throws OperationError for an unknown profile. */
function checkProfile({ deps }: OperationCall, profile: string | null | undefined): void {
  if (profile === undefined || profile === null) return;
  const known = profileNames(deps.settings);
  if (!known.includes(profile))
    throw new OperationError(
      "invalid_request",
      `profile: there is no profile "${profile}"; known: ${known.join(", ")}`,
    );
}

export const scheduleOperations = [
  implement(operations.schedulesList, ({ all, ...page }, { deps }) =>
    deps.bus.request(store.scheduleList, omitUndefined({ ...page, all: all === "true" })),
  ),

  implement(operations.schedulesGet, async ({ id }, call) => ({ job: await jobOf(call, id) })),

  implement(operations.schedulesHistory, async ({ id, limit }, call) => {
    const job = await jobOf(call, id);
    const { runs } = await call.deps.bus.request(store.scheduleGet, { id: job.id, runs: limit });
    return { runs };
  }),

  implement(operations.schedulesCreate, async (input, call) => {
    checkAddress(call, input.deliverTo);
    checkProfile(call, input.profile);
    const { bus, settings } = call.deps;
    return bus.request(store.scheduleCreate, {
      opId: call.operationId("schedule:create"),
      name: input.name ?? input.prompt.replaceAll(/\s+/g, " ").slice(0, 60),
      schedule: input.schedule,
      timeZone: input.timeZone ?? settings.agent.time_zone,
      prompt: input.prompt,
      target: input.target ?? (settings.session.policy === "singleton" && input.profile == null ? "main" : "own"),
      profile: input.profile ?? null,
      deliverTo: input.deliverTo ?? null,
      overlap: input.overlap ?? "skip",
      missed: input.missed ?? "run_once",
      afterRun: input.afterRun ?? "disable",
      maxRuns: input.maxRuns ?? null,
      keepRuns: input.keepRuns ?? 50,
      enabled: input.enabled ?? true,
      createdBy: { sessionId: null, turnId: null, trust: "owner" },
    });
  }),

  implement(operations.schedulesUpdate, async ({ id, ...change }, call) => {
    checkAddress(call, change.deliverTo);
    checkProfile(call, change.profile);
    const job = await jobOf(call, id);
    const opId = call.operationId(`schedule:update:${job.id}`);
    return call.deps.bus.request(store.scheduleUpdate, { opId, id: job.id, change });
  }),

  implement(operations.schedulesRemove, async ({ id }, call) => {
    const job = await jobOf(call, id);
    const opId = call.operationId(`schedule:remove:${job.id}`);
    await call.deps.bus.request(store.scheduleRemove, { opId, id: job.id });
    return { job };
  }),

  implement(operations.schedulesRun, async ({ id }, call) => {
    const job = await jobOf(call, id);
    const opId = call.operationId(`schedule:run:${job.id}`);
    const { inboxId: messageId, sessionId } = await call.deps.bus.request(store.scheduleRun, {
      opId,
      id: job.id,
      ...omitUndefined({ admission: admissionOfPerson(call, job) }),
    });
    return { job, messageId, sessionId };
  }),

  implement(operations.heartbeatRun, (_input, call) =>
    call.deps.bus.request(controlHeartbeat, { opId: call.operationId("schedule:heartbeat") }),
  ),
];
