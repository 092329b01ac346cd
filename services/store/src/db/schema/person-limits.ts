// Limits of people, the messages that count toward them, and refused messages.
import { date, doublePrecision, index, integer, primaryKey, text, uuid } from "drizzle-orm/pg-core";
import { store } from "@parley/contracts";
import { oneOf, parley, since, time } from "./columns.ts";

const person = {
  channel: text("channel").notNull(),
  account: text("account").notNull(),
  contactId: text("contact_id").notNull(),
};

export const personLimits = parley.table(
  "person_limits",
  {
    ...person,
    messagesPerMinute: integer("messages_per_minute"),
    turnsPerDay: integer("turns_per_day"),
    usdPerDay: doublePrecision("usd_per_day"),
    changedAt: since("changed_at"),
  },
  (table) => [primaryKey({ columns: [table.channel, table.account, table.contactId] })],
);

export const personMessages = parley.table(
  "person_messages",
  { inboxId: uuid("inbox_id").primaryKey(), ...person, at: time("at").notNull() },
  (table) => [
    index("person_messages_person").on(table.channel, table.account, table.contactId, table.at),
    index("person_messages_age").on(table.at),
  ],
);

export const personRefusals = parley.table(
  "person_refusals",
  {
    ...person,
    limitName: oneOf("limit_name", store.personLimitNames).notNull(),
    day: date("day").notNull(),
    refused: integer("refused").notNull(),
    toldUntil: time("told_until").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.channel, table.account, table.contactId, table.limitName] }),
    index("person_refusals_day").on(table.day),
  ],
);
