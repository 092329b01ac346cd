// Scheduled jobs and the manual heartbeat in the native API. Every holder of the API token is the owner.
import { randomUUID } from "node:crypto";
import { controlHeartbeat, store, type Schedule } from "@parley/contracts";
import { z } from "zod";
import { requireAccount } from "./require-account.ts";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { HttpError } from "./errors.ts";
import { operationId } from "./operation-ref.ts";

const JobParams = z.object({ id: z.string().min(1).max(120) });
const Job = z.object({ job: store.ScheduleSchema });
const keyHeader = { "Idempotency-Key": "A repeated key is the same change." };
const { opId: _, id: _id, createdBy: _createdBy, ...fields } = store.scheduleCreate.input.shape;
const Changes = z.strictObject(fields).partial();

export function scheduleRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  readingRoutes(endpoints, deps);
  changingRoutes(endpoints, deps);
  endpoints.add(
    {
      method: "POST",
      url: "/api/heartbeat",
      summary: "Run one heartbeat now, regardless of active hours",
      headers: keyHeader,
      body: z.strictObject({}),
      answers: {
        200: {
          description: "Whether it was added to the owner's session, or the reason why not",
          schema: controlHeartbeat.output,
        },
      },
    },
    ({ request }) => deps.bus.request(controlHeartbeat, { opId: operationId(request, "schedule:heartbeat") }),
  );
}

function readingRoutes(endpoints: Endpoints, { bus }: HttpDeps): void {
  endpoints.add(
    {
      method: "GET",
      url: "/api/schedules",
      summary: "Jobs, sorted by id",
      query: z.strictObject({
        /** Also include jobs that will not run again. */
        all: z.enum(["true", "false"]).default("true"),
        limit: z.coerce.number().int().min(1).max(100).default(100),
        /** The id of the last job of the previous page. */
        after: z.string().optional(),
      }),
      answers: {
        200: { description: "The jobs; `more`: further jobs follow", schema: store.scheduleList.output },
      },
    },
    ({ query: { all, limit, after } }) =>
      bus.request(store.scheduleList, { all: all === "true", limit, ...(after === undefined ? {} : { after }) }),
  );

  endpoints.add(
    {
      method: "GET",
      url: "/api/schedules/:id",
      summary: "One job, by id or name",
      params: JobParams,
      answers: { 200: { description: "The job", schema: Job } },
    },
    async ({ params }) => ({ job: await existing({ bus }, params.id) }),
  );

  endpoints.add(
    {
      method: "GET",
      url: "/api/schedules/:id/history",
      summary: "The due times of a job and their outcomes, newest first",
      params: JobParams,
      query: z.strictObject({ limit: z.coerce.number().int().min(1).max(200).default(50) }),
      answers: { 200: { description: "The retained runs", schema: store.scheduleHistory.output } },
    },
    async ({ params, query }) => {
      const { id } = await existing({ bus }, params.id);
      return bus.request(store.scheduleHistory, { id, limit: query.limit });
    },
  );
}

/** Throws HttpError when the job's answers could not be sent. */
function mustReach(deps: HttpDeps, deliverTo: Schedule["deliverTo"] | undefined): void {
  if (typeof deliverTo === "object" && deliverTo !== null) requireAccount(deps, deliverTo);
}

function changingRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  const { bus, settings } = deps;
  const target = settings.session.policy === "singleton" ? ("main" as const) : ("own" as const);

  endpoints.add(
    {
      method: "POST",
      url: "/api/schedules",
      summary: "Create a job",
      headers: keyHeader,
      body: Changes.required({ schedule: true, prompt: true }),
      answers: { 200: { description: "The job", schema: Job } },
    },
    async ({ body, request }) => {
      mustReach(deps, body.deliverTo);
      const { job } = await bus.request(store.scheduleCreate, {
        opId: operationId(request, "schedule:create"),
        name: body.name ?? body.prompt.replaceAll(/\s+/g, " ").slice(0, 60),
        schedule: body.schedule,
        timeZone: body.timeZone ?? settings.agent.time_zone,
        prompt: body.prompt,
        target: body.target ?? target,
        deliverTo: body.deliverTo ?? null,
        overlap: body.overlap ?? "skip",
        missed: body.missed ?? "run_once",
        afterRun: body.afterRun ?? "disable",
        maxRuns: body.maxRuns ?? null,
        keepRuns: body.keepRuns ?? 50,
        enabled: body.enabled ?? true,
        createdBy: { sessionId: null, turnId: null, trust: "owner" },
      });
      return { job };
    },
  );

  endpoints.add(
    {
      method: "POST",
      url: "/api/schedules/:id/update",
      summary: "Change a job; omitted fields stay unchanged",
      headers: keyHeader,
      params: JobParams,
      body: Changes,
      answers: { 200: { description: "The job", schema: Job } },
    },
    async ({ params, body, request }) => {
      mustReach(deps, body.deliverTo);
      const { id } = await existing({ bus }, params.id);
      return bus.request(store.scheduleUpdate, {
        opId: operationId(request, `schedule:update:${id}`),
        id,
        change: body,
      });
    },
  );

  endpoints.add(
    {
      method: "POST",
      url: "/api/schedules/:id/remove",
      summary: "Delete a job and its history",
      params: JobParams,
      body: z.strictObject({}),
      answers: { 200: { description: "The deleted job", schema: Job } },
    },
    async ({ params }) => {
      const job = await existing({ bus }, params.id);
      await bus.request(store.scheduleRemove, { opId: randomUUID(), id: job.id });
      return { job };
    },
  );

  endpoints.add(
    {
      method: "POST",
      url: "/api/schedules/:id/run",
      summary: "Run a job now, in addition to its schedule",
      headers: keyHeader,
      params: JobParams,
      body: z.strictObject({}),
      answers: {
        200: {
          description: "Its input; /api/messages/<messageId> returns its state",
          schema: z.object({ job: store.ScheduleSchema, messageId: z.string(), sessionId: z.string() }),
        },
      },
    },
    async ({ params, request }) => {
      const job = await existing({ bus }, params.id);
      const run = await bus.request(store.scheduleRun, {
        opId: operationId(request, `schedule:run:${job.id}`),
        id: job.id,
      });
      return { job, messageId: run.inboxId, sessionId: run.sessionId };
    },
  );
}

async function existing({ bus }: Pick<HttpDeps, "bus">, id: string): Promise<Schedule> {
  const { job } = await bus.request(store.scheduleGet, { id });
  if (job === null) throw new HttpError(404, "not_found", `there is no job "${id}", or several jobs have this name`);
  return job;
}
