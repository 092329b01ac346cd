// Sign-ins of the web console.
import { text } from "drizzle-orm/pg-core";
import { createdAt, oneOf, parley, time } from "./columns.ts";

export const consoleSessions = parley.table("console_sessions", {
  sha256: text("sha256").primaryKey(),
  kind: oneOf("kind", ["code", "session"]).notNull(),
  /** The beginning of the hash of the API token. */
  holder: text("holder").notNull(),
  createdAt: createdAt(),
  expiresAt: time("expires_at").notNull(),
});
