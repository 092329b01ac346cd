// Admitted contacts, pairing requests, added accounts, and pauses of accounts.
import { primaryKey, text } from "drizzle-orm/pg-core";
import { bigInteger, createdAt, oneOf, parley, since, time } from "./columns.ts";

export const contacts = parley.table(
  "contacts",
  {
    channel: text("channel").notNull(),
    account: text("account").notNull(),
    contactId: text("contact_id").notNull(),
    name: text("name"),
    role: oneOf("role", ["owner", "user", "guest", "blocked"]).notNull(),
    createdAt: createdAt(),
    route: text("route"),
  },
  (table) => [primaryKey({ columns: [table.channel, table.account, table.contactId] })],
);

export const channelAccounts = parley.table(
  "channel_accounts",
  {
    channel: text("channel").notNull(),
    account: text("account").notNull(),
    settings: text("settings").notNull(),
    identity: text("identity"),
    revision: bigInteger("revision").notNull().generatedAlwaysAsIdentity(),
    addedBy: text("added_by").notNull(),
    changedAt: since("changed_at"),
  },
  (table) => [primaryKey({ columns: [table.channel, table.account] })],
);

export const accountPauses = parley.table(
  "account_pauses",
  {
    channel: text("channel").notNull(),
    account: text("account").notNull(),
    pausedBy: text("paused_by").notNull(),
    pausedAt: since("paused_at"),
  },
  (table) => [primaryKey({ columns: [table.channel, table.account] })],
);

export const accountMoves = parley.table(
  "account_moves",
  {
    channel: text("channel").notNull(),
    account: text("account").notNull(),
    replica: text("replica").notNull(),
    movedBy: text("moved_by").notNull(),
    movedAt: since("moved_at"),
  },
  (table) => [primaryKey({ columns: [table.channel, table.account] })],
);

export const accountOutages = parley.table(
  "account_outages",
  {
    channel: text("channel").notNull(),
    account: text("account").notNull(),
    toldAt: since("told_at"),
  },
  (table) => [primaryKey({ columns: [table.channel, table.account] })],
);

export const pairings = parley.table(
  "pairings",
  {
    channel: text("channel").notNull(),
    account: text("account").notNull(),
    contactId: text("contact_id").notNull(),
    name: text("name"),
    codeSha256: text("code_sha256").notNull().unique("pairings_code_sha256_key"),
    expiresAt: time("expires_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.channel, table.account, table.contactId] })],
);
