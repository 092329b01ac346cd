// Operation ids, the epoch, leases, switches of MCP servers and applied migrations.
import { boolean, index, integer, text, uuid } from "drizzle-orm/pg-core";
import { bigInteger, createdAt, json, parley, since, time } from "./columns.ts";

export const ops = parley.table(
  "ops",
  {
    opId: uuid("op_id").primaryKey(),
    result: text("result").notNull(),
    createdAt: createdAt(),
  },
  (table) => [index("ops_age").on(table.createdAt)],
);

export const leadership = parley.table("leadership", {
  name: text("name").primaryKey(),
  epoch: bigInteger("epoch").notNull(),
  holder: text("holder"),
  acquiredAt: time("acquired_at"),
});

export const leadershipLog = parley.table("leadership_log", {
  epoch: bigInteger("epoch").primaryKey(),
  holder: text("holder").notNull(),
  acquiredAt: time("acquired_at").notNull(),
});

export const leaderKeys = parley.table("leader_keys", {
  epoch: bigInteger("epoch").primaryKey(),
  grantKey: text("grant_key").notNull(),
  createdAt: createdAt(),
});

export const leaseMembers = parley.table("lease_members", {
  owner: text("owner").primaryKey(),
  names: json<string[]>("names").notNull(),
  expiresAt: time("expires_at").notNull(),
});

export const leases = parley.table("leases", {
  name: text("name").primaryKey(),
  owner: text("owner"),
  fence: bigInteger("fence").notNull().default(0),
  expiresAt: time("expires_at").notNull(),
  cursor: text("cursor"),
});

export const mcpSwitches = parley.table("mcp_switches", {
  server: text("server").primaryKey(),
  switchedOn: boolean("switched_on").notNull().default(true),
  hidden: json<string[]>("hidden").notNull().default([]),
  restarts: integer("restarts").notNull().default(0),
  changedBy: text("changed_by").notNull(),
  changedAt: since("changed_at"),
});

export const schemaMigrations = parley.table("schema_migrations", {
  name: text("name").primaryKey(),
  appliedAt: since("applied_at"),
  contractSince: text("contract_since"),
});
