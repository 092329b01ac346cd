// Texts and attachments to send.
import type { store, Attachment } from "@parley/contracts";
import { sql } from "drizzle-orm";
import { boolean, index, integer, primaryKey, text, unique, uuid } from "drizzle-orm/pg-core";
import { bigInteger, createdAt, json, oneOf, parley, partialIndex, since, time } from "./columns.ts";
import { cascadingTurnReference, turns } from "./turns.ts";

export const outbox = parley.table(
  "outbox",
  {
    id: bigInteger("id").primaryKey().generatedAlwaysAsIdentity(),
    turnId: uuid("turn_id").references(() => turns.id),
    opId: uuid("op_id").unique("outbox_op_id_key"),
    ordinal: integer("ordinal").notNull(),
    channel: text("channel").notNull(),
    account: text("account").notNull(),
    conversation: text("conversation").notNull(),
    replyToId: text("reply_to_id"),
    body: json<string>("body").notNull(),
    state: oneOf("state", ["pending", "sending", "sent", "unknown", "dropped"]).notNull().default("pending"),
    attempts: integer("attempts").notNull().default(0),
    notBefore: since("not_before"),
    expiresAt: time("expires_at").notNull(),
    claimReplica: text("claim_replica"),
    claimIncarnation: text("claim_incarnation"),
    claimUntil: time("claim_until"),
    providerMessageId: text("provider_message_id"),
    error: text("error"),
    createdAt: createdAt(),
    settledAt: time("settled_at"),
    trace: text("trace"),
    attachment: json<Attachment>("attachment"),
    replyContext: text("reply_context"),
    actions: json<store.Action[]>("actions"),
    position: integer("position").notNull().default(0),
    parts: integer("parts").notNull().default(0),
    doubtfulParts: integer("doubtful_parts").notNull().default(0),
    interrupted: boolean("interrupted").notNull().default(false),
    replaces: text("replaces"),
    files: json<Attachment[]>("files"),
    heldAt: integer("held_at"),
    providerMessageIds: text("provider_message_ids").array().notNull().default([]),
  },
  (table) => [
    unique("outbox_turn_id_ordinal_key").on(table.turnId, table.ordinal),
    partialIndex(
      index("outbox_open").on(table.channel, table.account, table.conversation, table.id),
      sql`state IN ('pending', 'sending')`,
    ),
    partialIndex(
      index("outbox_held").on(table.channel, table.account, table.conversation, table.id),
      sql`held_at IS NOT NULL`,
    ),
    partialIndex(index("outbox_unknown").on(table.id), sql`state = 'unknown'`),
  ],
);

export const previews = parley.table(
  "previews",
  {
    turnId: cascadingTurnReference(),
    channel: text("channel").notNull(),
    account: text("account").notNull(),
    conversation: text("conversation").notNull(),
    state: oneOf("state", ["sending", "shown", "unknown"]).notNull().default("sending"),
    messageId: text("message_id"),
    superseded: boolean("superseded").notNull().default(false),
    replyContext: text("reply_context"),
    claimReplica: text("claim_replica").notNull(),
    claimIncarnation: text("claim_incarnation").notNull(),
    claimUntil: time("claim_until").notNull(),
  },
  (table) => [primaryKey({ columns: [table.channel, table.account, table.conversation, table.turnId] })],
);

export const sendLimits = parley.table(
  "send_limits",
  {
    channel: text("channel").notNull(),
    account: text("account").notNull(),
    conversation: text("conversation").notNull(),
    nextAt: since("next_at"),
    blockedUntil: time("blocked_until"),
  },
  (table) => [primaryKey({ columns: [table.channel, table.account, table.conversation] })],
);
