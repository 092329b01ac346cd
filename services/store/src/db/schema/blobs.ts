// Content of attachments, its references, and uploads.
import { boolean, index, integer, primaryKey, text, uuid } from "drizzle-orm/pg-core";
import { bytes, cascading, bigInteger, createdAt, oneOf, parley, referring, since, time } from "./columns.ts";
import { cascadingSessionReference, sessions } from "./sessions.ts";

export const blobs = parley.table(
  "blobs",
  {
    sha256: text("sha256").primaryKey(),
    bytes: bigInteger("bytes").notNull(),
    mediaType: text("media_type").notNull(),
    place: oneOf("place", ["database", "folder", "bucket"]).notNull(),
    touchedAt: since("touched_at"),
    doomedAt: time("doomed_at"),
    object: text("object"),
  },
  (table) => [index("blobs_age").on(table.touchedAt)],
);

export const blobChunks = parley.table(
  "blob_chunks",
  {
    sha256: cascading(text("sha256").notNull(), () => blobs.sha256),
    n: integer("n").notNull(),
    data: bytes("data").notNull(),
  },
  (table) => [primaryKey({ columns: [table.sha256, table.n] })],
);

export const blobRefs = parley.table(
  "blob_refs",
  {
    sessionId: cascadingSessionReference(),
    sha256: referring(text("sha256").notNull(), () => blobs.sha256),
  },
  (table) => [primaryKey({ columns: [table.sessionId, table.sha256] }), index("blob_refs_content").on(table.sha256)],
);

export const blobUploads = parley.table(
  "blob_uploads",
  {
    id: uuid("id").primaryKey(),
    sha256: text("sha256").notNull(),
    bytes: bigInteger("bytes").notNull(),
    done: boolean("done").notNull().default(false),
    createdAt: createdAt(),
    sessionId: cascading(uuid("session_id"), () => sessions.id),
  },
  (table) => [index("blob_uploads_age").on(table.createdAt), index("blob_uploads_session").on(table.sessionId)],
);

export const blobUploadChunks = parley.table(
  "blob_upload_chunks",
  {
    uploadId: cascading(uuid("upload_id").notNull(), () => blobUploads.id),
    n: integer("n").notNull(),
    data: bytes("data").notNull(),
  },
  (table) => [primaryKey({ columns: [table.uploadId, table.n] })],
);

export const blobStrays = parley.table(
  "blob_strays",
  {
    place: oneOf("place", ["folder", "bucket"]).notNull(),
    object: text("object").notNull(),
    removeAt: time("remove_at").notNull(),
    removing: boolean("removing").notNull().default(false),
  },
  (table) => [primaryKey({ columns: [table.place, table.object] }), index("blob_strays_due").on(table.removeAt)],
);
