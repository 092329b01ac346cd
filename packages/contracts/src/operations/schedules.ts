// Operations on scheduled jobs and the heartbeat.
import { z } from "zod";
import { controlHeartbeat } from "../control.ts";
import { scheduleCreate, scheduleGet, scheduleList, ScheduleSchema } from "../store/schedules.ts";
import { count, QuerySwitch, sameChange } from "./fields.ts";
import { operation } from "./operation.ts";

const Job = z.object({ job: ScheduleSchema });
/** The id or the name of a job. */
const id = z.string().min(1).max(120);
const { opId: _, id: __, createdBy: ___, personLimit: ____, ...fields } = scheduleCreate.input.shape;
const Changes = z.strictObject(fields).partial();

export const schedulesList = operation({
  name: "schedules.list",
  summary: "Jobs, sorted by id",
  role: "owner",
  input: z.strictObject({
    /** Also include jobs that will not run again. */
    all: QuerySwitch.default("true"),
    limit: count(1, 100).default(100),
    /** The id of the last job of the previous page. */
    after: z.string().optional(),
  }),
  output: scheduleList.output,
  http: { method: "GET", path: "/api/schedules", answers: { 200: "The jobs; `more`: further jobs follow" } },
});

export const schedulesGet = operation({
  name: "schedules.get",
  summary: "One job, by id or name",
  role: "owner",
  input: z.strictObject({ id }),
  output: Job,
  http: { method: "GET", path: "/api/schedules/:id", answers: { 200: "The job" } },
});

export const schedulesHistory = operation({
  name: "schedules.history",
  summary: "The due times of a job and their outcomes, newest first",
  role: "owner",
  input: z.strictObject({ id, limit: count(1, 200).default(50) }),
  output: scheduleGet.output.pick({ runs: true }),
  http: { method: "GET", path: "/api/schedules/:id/history", answers: { 200: "The retained runs" } },
});

export const schedulesCreate = operation({
  name: "schedules.create",
  summary: "Create a job",
  role: "owner",
  input: Changes.required({ schedule: true, prompt: true }),
  output: Job,
  http: { method: "POST", path: "/api/schedules", key: sameChange, answers: { 200: "The job" } },
});

export const schedulesUpdate = operation({
  name: "schedules.update",
  summary: "Change a job; omitted fields stay unchanged",
  role: "owner",
  input: Changes.extend({ id }),
  output: Job,
  http: { method: "POST", path: "/api/schedules/:id/update", key: sameChange, answers: { 200: "The job" } },
});

export const schedulesRemove = operation({
  name: "schedules.remove",
  summary: "Delete a job and its history",
  role: "owner",
  input: z.strictObject({ id }),
  output: Job,
  http: { method: "POST", path: "/api/schedules/:id/remove", emptyBody: true, answers: { 200: "The deleted job" } },
});

export const schedulesRun = operation({
  name: "schedules.run",
  summary: "Run a job now, in addition to its schedule",
  role: "owner",
  input: z.strictObject({ id }),
  output: z.object({ job: ScheduleSchema, messageId: z.string(), sessionId: z.string() }),
  http: {
    method: "POST",
    path: "/api/schedules/:id/run",
    key: sameChange,
    emptyBody: true,
    answers: { 200: "Its input; /api/messages/<messageId> returns its state" },
  },
});

export const heartbeatRun = operation({
  name: "heartbeat.run",
  summary: "Run one heartbeat now, regardless of active hours",
  role: "owner",
  input: z.strictObject({}),
  output: controlHeartbeat.output,
  http: {
    method: "POST",
    path: "/api/heartbeat",
    key: sameChange,
    emptyBody: true,
    answers: { 200: "Whether it was added to the owner's session, or the reason why not" },
  },
});
