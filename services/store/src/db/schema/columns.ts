// The schema of PostgreSQL and the column types of its tables. migrations/ creates the tables; a test compares both.
import { sql, type SQL } from "drizzle-orm";
import { bigint, customType, pgSchema, text, type AnyPgColumn, type IndexBuilder } from "drizzle-orm/pg-core";

export const parley = pgSchema("parley");

/** A bigint column read as a JavaScript number: only for values that stay far below 2^53. */
export const bigInteger = (name: string) => bigint(name, { mode: "number" });

/** ISO 8601, UTC, with milliseconds. Accepts what PostgreSQL parses. */
export const time = customType<{ data: string; driverData: string }>({
  dataType: () => "timestamp with time zone",
  fromDriver: (text) => new Date(text).toISOString(),
});

/** The time at which the row was inserted, unless set. */
export const since = (name: string, start = sql`now()`) => time(name).notNull().default(start);
export const createdAt = () => since("created_at");

/** A text that is one of a few values. */
export const oneOf = <U extends string, T extends Readonly<[U, ...U[]]>>(name: string, values: T) =>
  text(name, { enum: values as unknown as [U, ...U[]] }).$type<T[number]>();

/** A column with a foreign key. */
export const referring = <C extends ReferringColumn>(column: C, target: () => AnyPgColumn): C =>
  column.references(target) as C;
/** A column with a foreign key; the row is deleted with the row that it refers to. */
export const cascading = <C extends ReferringColumn>(column: C, target: () => AnyPgColumn): C =>
  column.references(target, { onDelete: "cascade" }) as C;

interface ReferringColumn {
  references(target: () => AnyPgColumn, actions?: { onDelete: "cascade" }): unknown;
}

/** An index of the rows that meet a condition. */
export const partialIndex = (every: IndexBuilder, condition: SQL): IndexBuilder => every.where(condition);

/** A value as JSON in a text column: byte for byte what was sent, with escaped NUL and lone surrogates, which jsonb would refuse. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller names the type of the value
export const json = <T>(name: string) =>
  customType<{ data: T; driverData: string }>({
    dataType: () => "text",
    fromDriver: (text) => JSON.parse(text) as T,
    toDriver: (value) => JSON.stringify(value),
  })(name);

export const bytes = customType<{ data: Buffer }>({ dataType: () => "bytea" });
export const bits = customType<{ data: string }>({ dataType: () => "bit varying" });

/** Usage and cost columns of sessions and turns. */
export const tokens = {
  inputTokens: bigInteger("input_tokens").notNull().default(0),
  outputTokens: bigInteger("output_tokens").notNull().default(0),
  cacheReadTokens: bigInteger("cache_read_tokens").notNull().default(0),
  cacheWriteTokens: bigInteger("cache_write_tokens").notNull().default(0),
};
