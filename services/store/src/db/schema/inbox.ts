// Input of sessions, and messages of groups that may become context of it.
import type { Part, ReplyAddress, Sender } from "@parley/contracts";
import { sql } from "drizzle-orm";
import { boolean, index, integer, smallint, text, unique, uuid } from "drizzle-orm/pg-core";
import { bigInteger, createdAt, json, oneOf, parley, partialIndex, referring, since, time } from "./columns.ts";
import { sessionReference } from "./sessions.ts";
import { turns } from "./turns.ts";

export const inbox = parley.table(
  "inbox",
  {
    id: uuid("id").primaryKey(),
    sessionId: sessionReference(),
    seq: bigInteger("seq").notNull(),
    channel: text("channel").notNull(),
    account: text("account").notNull(),
    externalId: text("external_id").notNull(),
    priority: smallint("priority").notNull(),
    parts: json<Part[]>("parts").notNull(),
    replyTo: json<ReplyAddress>("reply_to"),
    sender: json<Sender>("sender").notNull(),
    state: oneOf("state", ["queued", "claimed", "done", "dead", "cancelled"]).notNull().default("queued"),
    turnId: uuid("turn_id"),
    receivedAt: since("received_at"),
    mode: oneOf("mode", ["steer", "queue", "coalesce", "interrupt", "reject"]).notNull().default("queue"),
    trust: text("trust").notNull().default("owner"),
    readyAt: since("ready_at"),
    parentTurnId: referring(uuid("parent_turn_id"), () => turns.id),
    parentStep: integer("parent_step"),
    parentMode: oneOf("parent_mode", ["wait", "background"]),
    trace: text("trace"),
    exclusive: boolean("exclusive").notNull().default(false),
    conversation: json<string>("conversation"),
    messageId: json<string>("message_id"),
    sentAt: time("sent_at"),
    filesDue: time("files_due"),
    filesFence: integer("files_fence").notNull().default(0),
    filesClaimedUntil: time("files_claimed_until"),
  },
  (table) => [
    unique("inbox_channel_account_external_id_key").on(table.channel, table.account, table.externalId),
    unique("inbox_session_id_seq_key").on(table.sessionId, table.seq),
    partialIndex(index("inbox_dead").on(table.receivedAt), sql`state = 'dead'`),
    partialIndex(index("inbox_files").on(table.sessionId), sql`files_due IS NOT NULL`),
    partialIndex(index("inbox_message").on(table.channel, table.account, table.messageId), sql`message_id IS NOT NULL`),
    partialIndex(index("inbox_of_turn").on(table.turnId), sql`turn_id IS NOT NULL`),
    partialIndex(index("inbox_owner").on(table.receivedAt), sql`(trust = 'owner') AND (reply_to IS NOT NULL)`),
    partialIndex(index("inbox_queued").on(table.sessionId, table.priority, table.seq), sql`state = 'queued'`),
    partialIndex(index("inbox_task").on(table.parentTurnId), sql`parent_turn_id IS NOT NULL`),
  ],
);

export const groupContext = parley.table(
  "group_context",
  {
    n: bigInteger("n").primaryKey().generatedAlwaysAsIdentity(),
    channel: text("channel").notNull(),
    account: text("account").notNull(),
    externalId: text("external_id").notNull(),
    messageId: text("message_id").notNull(),
    conversation: text("conversation").notNull(),
    place: text("place").notNull(),
    route: text("route").notNull(),
    contactId: text("contact_id").notNull(),
    author: text("author").notNull(),
    text: text("text"),
    createdAt: createdAt(),
  },
  (table) => [
    unique("group_context_message_key").on(table.channel, table.account, table.externalId),
    index("group_context_age").on(table.createdAt),
    index("group_context_place").on(table.channel, table.account, table.place, table.n),
    partialIndex(index("group_context_route").on(table.route), sql`text IS NOT NULL`),
  ],
);
