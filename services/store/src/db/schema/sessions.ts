// Sessions, the prompt prefixes that they refer to, and the routes that are bound to them.
import type { SessionOverrides, Todo, ViewRecord } from "@parley/contracts";
import { sql } from "drizzle-orm";
import { boolean, index, integer, smallint, text, type AnyPgColumn, uuid } from "drizzle-orm/pg-core";
import {
  cascading,
  bigInteger,
  createdAt,
  json,
  oneOf,
  parley,
  partialIndex,
  referring,
  since,
  tokens,
} from "./columns.ts";

export const prefixes = parley.table("prefixes", {
  hash: text("hash").primaryKey(),
  content: text("content").notNull(),
  createdAt: createdAt(),
});

export const sessions = parley.table(
  "sessions",
  {
    id: uuid("id").primaryKey(),
    key: text("key").notNull().unique("sessions_key_key"),
    seq: bigInteger("seq").notNull().default(0),
    inboxSeq: bigInteger("inbox_seq").notNull().default(0),
    messageCount: integer("message_count").notNull().default(0),
    ...tokens,
    createdAt: createdAt(),
    updatedAt: since("updated_at"),
    title: text("title"),
    status: oneOf("status", ["active", "archived"]).notNull().default("active"),
    parentId: referring(uuid("parent_id"), (): AnyPgColumn => sessions.id),
    profile: text("profile"),
    depth: smallint("depth").notNull().default(0),
    costMicros: bigInteger("cost_micros").notNull().default(0),
    unpricedCalls: integer("unpriced_calls").notNull().default(0),
    overrides: json<SessionOverrides>("overrides"),
    view: json<ViewRecord>("view"),
    viewVersion: integer("view_version").notNull().default(0),
    prefixHash: referring(text("prefix_hash"), () => prefixes.hash),
    todos: json<Todo[]>("todos"),
    singleCall: boolean("single_call").notNull().default(false),
    titleTainted: boolean("title_tainted").notNull().default(false),
  },
  (table) => [
    partialIndex(index("sessions_children").on(table.parentId), sql`parent_id IS NOT NULL`),
    partialIndex(index("sessions_prefix").on(table.prefixHash), sql`prefix_hash IS NOT NULL`),
    index("sessions_recent").on(table.updatedAt.desc()),
    partialIndex(index("sessions_single_call").on(table.updatedAt), sql`single_call`),
    partialIndex(index("sessions_title").on(sql`lower(title)`), sql`(parent_id IS NULL) AND (title IS NOT NULL)`),
    partialIndex(
      index("sessions_untitled").on(table.id),
      sql`(parent_id IS NULL) AND (title IS NULL) AND (message_count > 0)`,
    ),
  ],
);

/** Column of rows that belong to a session. */
export const sessionReference = () => referring(uuid("session_id").notNull(), () => sessions.id);
/** Column of rows that are deleted with their session. */
export const cascadingSessionReference = () => cascading(uuid("session_id").notNull(), () => sessions.id);

export const bindings = parley.table(
  "bindings",
  {
    route: text("route").primaryKey(),
    sessionId: sessionReference(),
    boundAt: since("bound_at"),
  },
  (table) => [index("bindings_session").on(table.sessionId)],
);
