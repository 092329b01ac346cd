// Versions of documents.
import { sql } from "drizzle-orm";
import { boolean, index, integer, primaryKey, text, uniqueIndex, uuid } from "drizzle-orm/pg-core";
import { bigInteger, createdAt, oneOf, parley, partialIndex } from "./columns.ts";

export const documents = parley.table(
  "documents",
  {
    path: text("path").notNull(),
    version: integer("version").notNull(),
    change: bigInteger("change").notNull().generatedAlwaysAsIdentity().unique("documents_change_key"),
    content: text("content").notNull(),
    bytes: integer("bytes").notNull(),
    sha256: text("sha256").notNull(),
    deleted: boolean("deleted").notNull().default(false),
    author: oneOf("author", ["owner", "import", "agent", "untrusted"]).notNull(),
    turnId: uuid("turn_id"),
    latest: boolean("latest").notNull().default(true),
    createdAt: createdAt(),
    restoredFrom: integer("restored_from"),
    lineAuthor: oneOf("line_author", ["owner", "import", "agent", "untrusted"]),
    authors: text("authors"),
  },
  (table) => [
    primaryKey({ columns: [table.path, table.version] }),
    partialIndex(index("documents_changes").on(table.change), sql`latest`),
    partialIndex(uniqueIndex("documents_latest").on(table.path), sql`latest`),
  ],
);
