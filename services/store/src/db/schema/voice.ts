// Voice sessions, what they heard, and answers to speak.
import type { ReplyAddress, Sender } from "@parley/contracts";
import { sql } from "drizzle-orm";
import { index, integer, primaryKey, text, uniqueIndex, uuid } from "drizzle-orm/pg-core";
import { cascading, bigInteger, json, oneOf, parley, partialIndex, since, time } from "./columns.ts";
import { cascadingTurnReference } from "./turns.ts";

export const voiceSessions = parley.table(
  "voice_sessions",
  {
    id: uuid("id").primaryKey(),
    opId: uuid("op_id").notNull().unique("voice_sessions_op_id_key"),
    route: text("route").notNull(),
    source: text("source").notNull(),
    sender: json<Sender>("sender").notNull(),
    replyTo: json<ReplyAddress>("reply_to"),
    state: oneOf("state", ["starting", "listening", "stopping", "stopped", "failed"]).notNull(),
    claimedEpoch: bigInteger("claimed_epoch"),
    server: text("server"),
    sttSessionId: text("stt_session_id"),
    runner: text("runner"),
    sinceSeq: bigInteger("since_seq").notNull().default(0),
    utterances: integer("utterances").notNull().default(0),
    problem: text("problem"),
    startedAt: since("started_at"),
    changedAt: since("changed_at"),
  },
  (table) => [
    partialIndex(
      uniqueIndex("voice_sessions_open").on(table.route),
      sql`state IN ('starting', 'listening', 'stopping')`,
    ),
    index("voice_sessions_route").on(table.route, table.startedAt.desc()),
  ],
);

export const voiceEvents = parley.table(
  "voice_events",
  {
    voiceId: cascading(uuid("voice_id").notNull(), () => voiceSessions.id),
    seq: bigInteger("seq").notNull(),
    type: text("type").notNull(),
    text: json<string>("text").notNull(),
    at: since("at"),
  },
  (table) => [primaryKey({ columns: [table.voiceId, table.seq] })],
);

export const spokenReplies = parley.table(
  "spoken_replies",
  {
    id: bigInteger("id").primaryKey().generatedAlwaysAsIdentity(),
    turnId: cascadingTurnReference(),
    text: json<string>("text").notNull(),
    address: json<ReplyAddress>("address").notNull(),
    attempts: integer("attempts").notNull().default(0),
    notBefore: since("not_before"),
    expiresAt: time("expires_at").notNull(),
  },
  (table) => [index("spoken_replies_turn").on(table.turnId)],
);
