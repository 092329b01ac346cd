// Jobs and their runs.
import type { Schedule, Sender } from "@parley/contracts";
import { sql } from "drizzle-orm";
import { boolean, index, integer, primaryKey, text, uuid } from "drizzle-orm/pg-core";
import { cascading, createdAt, json, oneOf, parley, partialIndex, since, time } from "./columns.ts";

export const schedules = parley.table(
  "schedules",
  {
    id: text("id").primaryKey(),
    name: text("name").notNull(),
    schedule: text("schedule").notNull(),
    anchor: time("anchor").notNull(),
    timeZone: text("time_zone").notNull(),
    prompt: json<string>("prompt").notNull(),
    target: oneOf("target", ["main", "own"]).notNull(),
    deliverTo: json<NonNullable<Schedule["deliverTo"]>>("deliver_to"),
    overlap: oneOf("overlap", ["skip", "queue"]).notNull(),
    missed: oneOf("missed", ["skip", "run_once"]).notNull(),
    afterRun: oneOf("after_run", ["disable", "delete"]).notNull(),
    maxRuns: integer("max_runs"),
    keepRuns: integer("keep_runs").notNull(),
    enabled: boolean("enabled").notNull(),
    runs: integer("runs").notNull().default(0),
    nextDue: time("next_due"),
    lastDue: time("last_due"),
    lastInboxId: uuid("last_inbox_id"),
    createdBy: json<Schedule["createdBy"]>("created_by").notNull(),
    createdAt: createdAt(),
    updatedAt: since("updated_at"),
    tainted: boolean("tainted").notNull().default(false),
    profile: text("profile"),
    personKey: text("person_key"),
    person: json<Sender>("person"),
    personRoute: text("person_route"),
  },
  (table) => [
    partialIndex(index("schedules_due").on(table.nextDue, table.id), sql`next_due IS NOT NULL`),
    index("schedules_name").on(table.name),
    partialIndex(index("schedules_person").on(table.personKey), sql`person_key IS NOT NULL`),
  ],
);

export const scheduleRuns = parley.table(
  "schedule_runs",
  {
    jobId: cascading(text("job_id").notNull(), () => schedules.id),
    due: time("due").notNull(),
    at: since("at"),
    manual: boolean("manual").notNull().default(false),
    outcome: oneOf("outcome", ["fired", "skipped", "missed", "failed"]).notNull(),
    reason: text("reason"),
    inboxId: uuid("inbox_id"),
  },
  (table) => [primaryKey({ columns: [table.jobId, table.due] })],
);
