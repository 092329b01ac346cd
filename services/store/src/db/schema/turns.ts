// Turns, and the log of a session: its messages and durable events, numbered by one counter.
import type { DurableEvent, Part, ReplyAddress, Sender, TurnSummary } from "@parley/contracts";
import { sql } from "drizzle-orm";
import { boolean, index, integer, primaryKey, text, type AnyPgColumn, uniqueIndex, uuid } from "drizzle-orm/pg-core";
import {
  cascading,
  counter,
  createdAt,
  json,
  oneOf,
  parley,
  partial,
  referring,
  since,
  time,
  tokens,
} from "./columns.ts";
import { ofSession } from "./sessions.ts";

export const turns = parley.table(
  "turns",
  {
    id: uuid("id").primaryKey(),
    sessionId: ofSession(),
    inboxId: uuid("inbox_id").notNull(),
    state: oneOf("state", ["running", "done", "failed", "cancelled", "dead"]).notNull(),
    epoch: counter("epoch").notNull(),
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
    costMicros: counter("cost_micros").notNull().default(0),
    unpricedCalls: integer("unpriced_calls").notNull().default(0),
    exclusive: boolean("exclusive").notNull().default(false),
  },
  (table) => [
    partial(uniqueIndex("turns_one_running").on(table.sessionId), sql`state = 'running'`),
    partial(index("turns_parent").on(table.parentTurnId), sql`parent_turn_id IS NOT NULL`),
    partial(index("turns_root").on(table.rootTurnId), sql`root_turn_id IS NOT NULL`),
    index("turns_session").on(table.sessionId),
  ],
);

/** Column of rows that belong to a turn. */
export const ofTurn = () => referring(uuid("turn_id").notNull(), () => turns.id);
/** Column of rows that are deleted with their turn. */
export const ownedByTurn = () => cascading(uuid("turn_id").notNull(), () => turns.id);

export const messages = parley.table(
  "messages",
  {
    sessionId: ofSession(),
    seq: counter("seq").notNull(),
    turnId: ofTurn(),
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
    partial(index("messages_words").using("gin", sql`parley.message_words(parts)`), sql`role <> 'tool'`),
  ],
);

export const events = parley.table(
  "events",
  {
    sessionId: ofSession(),
    seq: counter("seq").notNull(),
    type: text("type").$type<DurableEvent["type"]>().notNull(),
    turnId: uuid("turn_id").notNull(),
    createdAt: createdAt(),
    body: json<object>("body"),
  },
  (table) => [primaryKey({ columns: [table.sessionId, table.seq] }), index("events_age").on(table.createdAt)],
);
