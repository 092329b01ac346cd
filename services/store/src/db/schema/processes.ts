// Background processes of tool-runners.
import { sql } from "drizzle-orm";
import { boolean, index, text, uuid } from "drizzle-orm/pg-core";
import { oneOf, parley, partialIndex, since, time } from "./columns.ts";
import { cascadingSessionReference } from "./sessions.ts";
import { cascadingTurnReference } from "./turns.ts";

export const processes = parley.table(
  "processes",
  {
    id: text("id").primaryKey(),
    sessionId: cascadingSessionReference(),
    turnId: cascadingTurnReference(),
    runner: text("runner").notNull(),
    command: text("command").notNull(),
    startedAt: time("started_at").notNull(),
    notify: boolean("notify").notNull(),
    tainted: boolean("tainted").notNull(),
    told: boolean("told").notNull().default(false),
    state: oneOf("state", ["running", "ended", "lost"]).notNull().default("running"),
    seenAt: since("seen_at"),
    endedAt: time("ended_at"),
    inboxId: uuid("inbox_id"),
    keyHash: text("key_hash"),
  },
  (table) => [
    partialIndex(index("processes_ended").on(table.endedAt), sql`state <> 'running'`),
    partialIndex(index("processes_running").on(table.runner), sql`state = 'running'`),
    index("processes_session").on(table.sessionId, table.startedAt),
    index("processes_turn").on(table.turnId),
  ],
);
