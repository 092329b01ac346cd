// Calls of tools that the program which drives a session runs itself.
import { integer, primaryKey, text, uuid } from "drizzle-orm/pg-core";
import { parley, time } from "./columns.ts";
import { cascadingTurnReference } from "./turns.ts";

export const programCalls = parley.table(
  "program_calls",
  {
    turnId: cascadingTurnReference(),
    n: integer("n").notNull(),
    /** JSON text of the arguments. */
    input: text("input").notNull(),
    heldBy: uuid("held_by"),
    heldUntil: time("held_until").notNull(),
  },
  (table) => [primaryKey({ columns: [table.turnId, table.n] })],
);
