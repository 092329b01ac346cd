// States of files and documents before changes, and rewinds to them.
import type { RewindReport } from "@parley/contracts";
import { sql } from "drizzle-orm";
import { index, integer, primaryKey, text, uniqueIndex, uuid } from "drizzle-orm/pg-core";
import { cascading, bigInteger, createdAt, json, oneOf, parley, partialIndex, since, time } from "./columns.ts";
import { cascadingSessionReference } from "./sessions.ts";

export const checkpoints = parley.table(
  "checkpoints",
  {
    id: uuid("id").primaryKey(),
    sessionId: cascadingSessionReference(),
    kind: oneOf("kind", ["turn", "rewind"]).notNull(),
    at: time("at").notNull(),
  },
  (table) => [index("checkpoints_age").on(table.at), index("checkpoints_session").on(table.sessionId, table.at)],
);

export const checkpointFiles = parley.table(
  "checkpoint_files",
  {
    checkpointId: cascading(uuid("checkpoint_id").notNull(), () => checkpoints.id),
    path: text("path").notNull(),
    n: bigInteger("n").notNull().generatedAlwaysAsIdentity(),
    kind: oneOf("kind", ["file", "link", "directory", "absent", "untracked"]).notNull(),
    sha256: text("sha256"),
    size: bigInteger("size"),
    mode: integer("mode"),
    reason: text("reason"),
    trackedAt: since("tracked_at"),
  },
  (table) => [
    primaryKey({ columns: [table.checkpointId, table.path] }),
    partialIndex(index("checkpoint_files_content").on(table.sha256), sql`sha256 IS NOT NULL`),
  ],
);

export const checkpointDocuments = parley.table(
  "checkpoint_documents",
  {
    checkpointId: cascading(uuid("checkpoint_id").notNull(), () => checkpoints.id),
    path: text("path").notNull(),
    version: integer("version").notNull(),
  },
  (table) => [primaryKey({ columns: [table.checkpointId, table.path] })],
);

export const rewinds = parley.table(
  "rewinds",
  {
    id: uuid("id").primaryKey(),
    sessionId: cascadingSessionReference(),
    targetId: uuid("target_id").notNull(),
    state: oneOf("state", ["running", "done", "failed"]).notNull(),
    runner: text("runner").notNull(),
    fence: bigInteger("fence").notNull().default(1),
    expiresAt: time("expires_at").notNull(),
    report: json<RewindReport>("report"),
    beganAt: since("began_at"),
  },
  () => [partialIndex(uniqueIndex("rewinds_one_running").on(sql`(true)`), sql`state = 'running'`)],
);

export const rewindPermits = parley.table(
  "rewind_permits",
  {
    rewindId: uuid("rewind_id").notNull(),
    secretHash: text("secret_hash").notNull(),
    sessionId: cascadingSessionReference(),
    targetId: uuid("target_id").notNull(),
    createdAt: createdAt(),
  },
  (table) => [
    primaryKey({ columns: [table.rewindId, table.secretHash] }),
    index("rewind_permits_age").on(table.createdAt),
    index("rewind_permits_session").on(table.sessionId),
  ],
);
