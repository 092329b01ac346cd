// The memory index, and the progress of consolidation.
import type { Usage } from "@parley/contracts";
import { sql } from "drizzle-orm";
import { date, index, integer, primaryKey, smallint, text, uuid } from "drizzle-orm/pg-core";
import { bits, bytes, cascading, bigInteger, createdAt, json, oneOf, parley, partialIndex } from "./columns.ts";
import { sessions } from "./sessions.ts";

export const memoryDocuments = parley.table("memory_documents", {
  path: text("path").primaryKey(),
  version: integer("version").notNull(),
  madeBy: text("made_by").notNull(),
  authors: text("authors").notNull(),
});

export const memorySessions = parley.table("memory_sessions", {
  sessionId: cascading(uuid("session_id").primaryKey(), () => sessions.id),
  seq: bigInteger("seq").notNull(),
  madeBy: text("made_by").notNull(),
});

export const memoryChunks = parley.table(
  "memory_chunks",
  {
    id: bigInteger("id").primaryKey(),
    scope: text("scope").notNull(),
    path: text("path"),
    sessionId: cascading(uuid("session_id"), () => sessions.id),
    turnId: uuid("turn_id"),
    seq: bigInteger("seq"),
    fromLine: integer("from_line").notNull(),
    toLine: integer("to_line").notNull(),
    text: text("text").notNull(),
    sha256: text("sha256").notNull(),
    length: integer("length").notNull(),
    author: oneOf("author", ["owner", "import", "agent", "untrusted"]).notNull(),
    speaker: text("speaker"),
    day: date("day"),
  },
  (table) => [
    partialIndex(index("memory_chunks_path").on(table.path), sql`path IS NOT NULL`),
    index("memory_chunks_scope").on(table.scope),
    partialIndex(index("memory_chunks_session").on(table.sessionId, table.id), sql`session_id IS NOT NULL`),
    index("memory_chunks_sha256").on(table.sha256),
  ],
);

export const memoryWords = parley.table(
  "memory_words",
  {
    scope: text("scope").notNull(),
    word: text("word").notNull(),
    chunkId: cascading(bigInteger("chunk_id").notNull(), () => memoryChunks.id),
    count: smallint("count").notNull(),
    length: integer("length").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.scope, table.word, table.chunkId] }),
    index("memory_words_chunk").on(table.chunkId),
  ],
);

export const memoryVectors = parley.table(
  "memory_vectors",
  {
    model: text("model").notNull(),
    sha256: text("sha256").notNull(),
    packed: bytes("packed").notNull(),
    signature: bits("signature").generatedAlwaysAs(sql`parley.signs(packed)`),
  },
  (table) => [primaryKey({ columns: [table.model, table.sha256] })],
);

export const memoryConsolidatedNotes = parley.table("memory_consolidated_notes", {
  path: text("path").primaryKey(),
  version: integer("version").notNull(),
  partVersion: integer("part_version"),
  partLine: integer("part_line"),
});

export const memoryConsolidatedSessions = parley.table("memory_consolidated_sessions", {
  sessionId: cascading(uuid("session_id").primaryKey(), () => sessions.id),
  seq: bigInteger("seq").notNull(),
});

export const memoryConsolidations = parley.table(
  "memory_consolidations",
  {
    id: bigInteger("id").primaryKey().generatedAlwaysAsIdentity(),
    createdAt: createdAt(),
    outcome: oneOf("outcome", ["saved", "unchanged", "conflict", "refused", "failed", "cancelled"]).notNull(),
    reason: text("reason"),
    version: integer("version"),
    model: text("model").notNull(),
    usage: json<Usage>("usage").notNull(),
    costMicros: bigInteger("cost_micros"),
  },
  (table) => [index("memory_consolidations_age").on(table.createdAt)],
);
