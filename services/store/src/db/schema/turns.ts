// Turns, and the log of a session: its messages and durable events, numbered by one counter.
import type { DurableEvent, Part, ReplyAddress, Sender, TurnSummary } from "@parley/contracts";
import { sql } from "drizzle-orm";
import { boolean, index, integer, primaryKey, text, type AnyPgColumn, uniqueIndex, uuid } from "drizzle-orm/pg-core";
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
  time,
  tokens,
} from "./columns.ts";
import { sessionReference } from "./sessions.ts";

export const turns = parley.table(
  "turns",
  {
    id: uuid("id").primaryKey(),
    sessionId: sessionReference(),
    inboxId: uuid("inbox_id").notNull(),
    state: oneOf("state", ["running", "done", "failed", "cancelled", "dead"]).notNull(),
    epoch: bigInteger("epoch").notNull(),
    attempts: integer("attempts").notNull().default(1),
    replyTo: json<ReplyAddress>("reply_to"),
    nextStep: integer("next_step").notNull().default(1),
    modelSteps: integer("model_steps").notNull().default(0),
    cancelRequested: boolean("cancel_requested").notNull().default(false),
    exitReason: text("exit_reason").$type<NonNullable<TurnSummary["exitReason"]>>(),
    answer: json<string>("answer"),
    ...tokens,
    startedAt: since("started_at"),
    claimedAt: since("claimed_at", sql`clock_timestamp()`),
    finishedAt: time("finished_at"),
    trust: text("trust").notNull().default("owner"),
    parked: boolean("parked").notNull().default(false),
    wakeAt: time("wake_at"),
    parentTurnId: referring(uuid("parent_turn_id"), (): AnyPgColumn => turns.id),
    parentStep: integer("parent_step"),
    parentMode: oneOf("parent_mode", ["wait", "background"]),
    rootTurnId: referring(uuid("root_turn_id"), (): AnyPgColumn => turns.id),
    costMicros: bigInteger("cost_micros").notNull().default(0),
    unpricedCalls: integer("unpriced_calls").notNull().default(0),
    exclusive: boolean("exclusive").notNull().default(false),
  },
  (table) => [
    partialIndex(uniqueIndex("turns_one_running").on(table.sessionId), sql`state = 'running'`),
    partialIndex(index("turns_parent").on(table.parentTurnId), sql`parent_turn_id IS NOT NULL`),
    partialIndex(index("turns_root").on(table.rootTurnId), sql`root_turn_id IS NOT NULL`),
    index("turns_session").on(table.sessionId),
  ],
);

/** Foreign key of rows that belong to a turn. */
export const turnReference = () => referring(uuid("turn_id").notNull(), () => turns.id);
/** Foreign key of rows that are deleted with their turn. */
export const cascadingTurnReference = () => cascading(uuid("turn_id").notNull(), () => turns.id);

export const messages = parley.table(
  "messages",
  {
    sessionId: sessionReference(),
    seq: bigInteger("seq").notNull(),
    turnId: turnReference(),
    role: oneOf("role", ["user", "assistant", "tool"]).notNull(),
    parts: json<Part[]>("parts").notNull(),
    model: text("model"),
    createdAt: createdAt(),
    sender: json<Sender>("sender"),
    tainted: boolean("tainted"),
    sentAt: time("sent_at"),
  },
  (table) => [
    primaryKey({ columns: [table.sessionId, table.seq] }),
    index("messages_turn").on(table.turnId),
    partialIndex(index("messages_words").using("gin", sql`parley.message_words(parts)`), sql`role <> 'tool'`),
  ],
);

export const events = parley.table(
  "events",
  {
    sessionId: sessionReference(),
    seq: bigInteger("seq").notNull(),
    type: text("type").$type<DurableEvent["type"]>().notNull(),
    turnId: uuid("turn_id").notNull(),
    createdAt: createdAt(),
    body: json<object>("body"),
  },
  (table) => [primaryKey({ columns: [table.sessionId, table.seq] }), index("events_age").on(table.createdAt)],
);
