// Questions to people, and approvals of tool calls.
import type { StoredAuthorization } from "@parley/contracts";
import { sql } from "drizzle-orm";
import { boolean, index, integer, primaryKey, text, unique, uuid } from "drizzle-orm/pg-core";
import { json, oneOf, parley, partialIndex, since, time } from "./columns.ts";
import { sessionReference } from "./sessions.ts";
import { turnReference } from "./turns.ts";

export const questions = parley.table(
  "questions",
  {
    turnId: turnReference(),
    n: integer("n").notNull(),
    sessionId: sessionReference(),
    trust: text("trust").notNull(),
    body: json<{ question: string; options: string[] }>("body").notNull(),
    state: oneOf("state", ["open", "answered", "over"]).notNull().default("open"),
    askedAt: since("asked_at"),
    expiresAt: time("expires_at").notNull(),
    raisedAs: uuid("raised_as"),
    answer: text("answer"),
    heldUntil: time("held_until"),
    raised: integer("raised").notNull().default(0),
    answeredBy: uuid("answered_by"),
    fetched: boolean("fetched").notNull().default(false),
  },
  (table) => [
    primaryKey({ columns: [table.turnId, table.n] }),
    partialIndex(index("questions_open").on(table.sessionId, table.askedAt), sql`state = 'open'`),
    index("questions_session").on(table.sessionId),
  ],
);

export const approvals = parley.table(
  "approvals",
  {
    id: text("id").primaryKey(),
    sessionId: sessionReference(),
    turnId: turnReference(),
    n: integer("n").notNull(),
    tool: text("tool").notNull(),
    callHash: text("call_hash").notNull(),
    summary: text("summary").notNull(),
    reason: text("reason").notNull(),
    state: oneOf("state", ["pending", "allowed", "denied", "expired", "used"]).notNull().default("pending"),
    always: boolean("always").notNull().default(false),
    requestedAt: since("requested_at"),
    expiresAt: time("expires_at").notNull(),
    decidedBy: text("decided_by"),
    decidedAt: time("decided_at"),
    updatedInput: text("updated_input"),
    message: text("message"),
    interrupt: boolean("interrupt").notNull().default(false),
    input: json<string>("input"),
    grants: json<string[]>("grants"),
    authorizationJson: json<StoredAuthorization>("authorization_json"),
  },
  (table) => [
    unique("approvals_turn_id_n_call_hash_key").on(table.turnId, table.n, table.callHash),
    partialIndex(index("approvals_pending").on(table.expiresAt), sql`state = 'pending'`),
    index("approvals_session").on(table.sessionId, table.requestedAt),
  ],
);
