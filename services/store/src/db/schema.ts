// The tables of the query builder. migrations/ creates them; a test compares both.
import type { store } from "@parley/contracts";
import { bigint, boolean, integer, pgSchema, smallint, text, timestamp, uuid } from "./drizzle.ts";
import type { z } from "zod";

const parley = pgSchema("parley");
const counter = (name: string) => bigint(name, { mode: "number" });
const time = (name: string) => timestamp(name, { withTimezone: true, mode: "string" });
const tokens = {
  inputTokens: counter("input_tokens").notNull(),
  outputTokens: counter("output_tokens").notNull(),
  cacheReadTokens: counter("cache_read_tokens").notNull(),
  cacheWriteTokens: counter("cache_write_tokens").notNull(),
};

export const sessions = parley.table("sessions", {
  id: uuid("id").primaryKey(),
  key: text("key").notNull(),
  seq: counter("seq").notNull(),
  inboxSeq: counter("inbox_seq").notNull(),
  messageCount: integer("message_count").notNull(),
  ...tokens,
  createdAt: time("created_at").notNull(),
  updatedAt: time("updated_at").notNull(),
  title: text("title"),
  titleTainted: boolean("title_tainted").notNull(),
  status: text("status", { enum: ["active", "archived"] }).notNull(),
  parentId: uuid("parent_id"),
  profile: text("profile"),
  depth: smallint("depth").notNull(),
  costMicros: counter("cost_micros").notNull(),
  unpricedCalls: integer("unpriced_calls").notNull(),
  overrides: text("overrides"),
  view: text("view"),
  viewVersion: integer("view_version").notNull(),
  prefixHash: text("prefix_hash"),
  todos: text("todos"),
  singleCall: boolean("single_call").notNull(),
});

const taskModes = ["wait", "background"] as const;

export const turns = parley.table("turns", {
  id: uuid("id").primaryKey(),
  sessionId: uuid("session_id").notNull(),
  inboxId: uuid("inbox_id").notNull(),
  state: text("state", { enum: ["running", "done", "failed", "cancelled", "dead"] }).notNull(),
  epoch: counter("epoch").notNull(),
  attempts: integer("attempts").notNull(),
  replyTo: text("reply_to"),
  nextStep: integer("next_step").notNull(),
  modelSteps: integer("model_steps").notNull(),
  cancelRequested: boolean("cancel_requested").notNull(),
  exitReason: text("exit_reason"),
  answer: text("answer"),
  ...tokens,
  startedAt: time("started_at").notNull(),
  claimedAt: time("claimed_at").notNull(),
  finishedAt: time("finished_at"),
  trust: text("trust").notNull(),
  parked: boolean("parked").notNull(),
  wakeAt: time("wake_at"),
  parentTurnId: uuid("parent_turn_id"),
  parentStep: integer("parent_step"),
  parentMode: text("parent_mode", { enum: taskModes }),
  rootTurnId: uuid("root_turn_id"),
  costMicros: counter("cost_micros").notNull(),
  unpricedCalls: integer("unpriced_calls").notNull(),
  exclusive: boolean("exclusive").notNull(),
});

export const inbox = parley.table("inbox", {
  id: uuid("id").primaryKey(),
  sessionId: uuid("session_id").notNull(),
  seq: counter("seq").notNull(),
  channel: text("channel").notNull(),
  account: text("account").notNull(),
  externalId: text("external_id").notNull(),
  priority: smallint("priority").notNull(),
  parts: text("parts").notNull(),
  replyTo: text("reply_to"),
  sender: text("sender").notNull(),
  state: text("state", { enum: ["queued", "claimed", "done", "dead", "cancelled"] }).notNull(),
  turnId: uuid("turn_id"),
  receivedAt: time("received_at").notNull(),
  mode: text("mode", { enum: ["steer", "queue", "coalesce", "interrupt", "reject"] }).notNull(),
  trust: text("trust").notNull(),
  readyAt: time("ready_at").notNull(),
  parentTurnId: uuid("parent_turn_id"),
  parentStep: integer("parent_step"),
  parentMode: text("parent_mode", { enum: taskModes }),
  trace: text("trace"),
  exclusive: boolean("exclusive").notNull(),
});

export const contacts = parley.table("contacts", {
  channel: text("channel").notNull(),
  account: text("account").notNull(),
  contactId: text("contact_id").notNull(),
  name: text("name"),
  role: text("role", { enum: ["owner", "user", "guest", "blocked"] }).notNull(),
  createdAt: time("created_at").notNull(),
});

export const pairings = parley.table("pairings", {
  channel: text("channel").notNull(),
  account: text("account").notNull(),
  contactId: text("contact_id").notNull(),
  name: text("name"),
  codeSha256: text("code_sha256").notNull(),
  expiresAt: time("expires_at").notNull(),
});

// Compile-time check: a contact row has the type of a contact on the wire.
type WireContact = z.infer<typeof store.ContactSchema>;
const _contactMatches = (row: Omit<typeof contacts.$inferSelect, "createdAt">): WireContact => row;
void _contactMatches;
