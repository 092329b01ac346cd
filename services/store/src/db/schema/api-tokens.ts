// Named tokens of the API, and the audit log.
import type { ApiScope } from "@parley/contracts";
import { text } from "drizzle-orm/pg-core";
import { bigInteger, createdAt, json, oneOf, parley, since, time } from "./columns.ts";

export const apiTokens = parley.table("api_tokens", {
  sha256: text("sha256").primaryKey(),
  name: text("name").notNull(),
  scopes: json<ApiScope[]>("scopes").notNull(),
  createdAt: createdAt(),
  createdBy: text("created_by").notNull(),
  expiresAt: time("expires_at"),
  usedAt: time("used_at"),
  revokedAt: time("revoked_at"),
});

export const auditLog = parley.table("audit_log", {
  n: bigInteger("n").primaryKey().generatedAlwaysAsIdentity(),
  at: since("at"),
  actor: text("actor").notNull(),
  action: text("action").notNull(),
  target: json<Record<string, unknown>>("target").notNull(),
  outcome: oneOf("outcome", ["requested", "failed", "refused"]).notNull(),
});
