// The tables of db/schema are those that the migrations make: columns, types, nullability, which columns have a default, keys and indexes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Cleanup, startStoreStack } from "@parley/testing";
import { is, SQL } from "drizzle-orm";
import { getTableConfig, IndexedColumn, PgDialect, PgTable } from "drizzle-orm/pg-core";
import { Client } from "pg";
import * as schema from "../src/db/schema/index.ts";

interface Shape {
  columns: string[];
  keys: string[];
  indexes: string[];
}

const dialect = new PgDialect();
const text = (part: SQL) => dialect.sqlToQuery(part).sql;

/** One spelling for conditions of indexes, which PostgreSQL stores in its own. */
const condition = (sql: string) =>
  sql
    .replaceAll("::text", "")
    .replaceAll(/= ANY \(ARRAY\[(.*?)\]\)/g, "IN ($1)")
    .replaceAll(/[()\s]/g, "");

function declared(table: PgTable): Shape {
  const { name, columns, primaryKeys, uniqueConstraints, foreignKeys, indexes } = getTableConfig(table);
  const keyColumns = [...primaryKeys.flatMap((key) => key.columns), ...columns.filter((column) => column.primary)];
  return {
    columns: columns.map((column) => {
      const filled = column.generated !== undefined ? "generated" : column.hasDefault ? "default" : "";
      return `${column.name} ${column.getSQLType()} ${column.notNull ? "not null" : "null"} ${filled}`.trim();
    }),
    keys: [
      `primary ${keyColumns.map((column) => column.name).join(", ")}`,
      ...uniqueConstraints.map((key) => `unique ${key.columns.map((column) => column.name).join(", ")}`),
      ...columns.filter((column) => column.isUnique).map((column) => `unique ${column.name}`),
      ...foreignKeys.map((key) => {
        const { columns: from, foreignTable, foreignColumns } = key.reference();
        const target = `${getTableConfig(foreignTable).name} ${foreignColumns.map((column) => column.name).join(", ")}`;
        return `foreign ${from.map((column) => column.name).join(", ")} to ${target} ${key.onDelete ?? "no action"}`;
      }),
    ].sort(),
    indexes: indexes
      .map(({ config }) => {
        const parts = config.columns.map((column) => {
          if (is(column, SQL)) return text(column);
          assert.ok(is(column, IndexedColumn));
          return `${column.name ?? ""}${column.indexConfig.order === "desc" ? " DESC" : ""}`;
        });
        const where = config.where === undefined ? "" : ` where ${condition(text(config.where))}`;
        return `${config.name ?? name} ${config.unique ? "unique " : ""}${parts.map(condition).join(", ")}${where}`;
      })
      .sort(),
  };
}

async function migrated(client: Client): Promise<Map<string, Shape>> {
  const rows = async <R extends object>(sql: string) => (await client.query<R>(sql)).rows;
  const tables = await rows<{ oid: number; name: string }>(
    "SELECT oid, relname AS name FROM pg_class WHERE relnamespace = 'parley'::regnamespace AND relkind = 'r'",
  );
  const columns = await rows<{ oid: number; column: string }>(
    `SELECT a.attrelid AS oid, concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'not null' ELSE 'null' END,
       CASE WHEN a.attgenerated <> '' THEN 'generated' WHEN d.oid IS NOT NULL OR a.attidentity <> '' THEN 'default' END) AS column
     FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
     WHERE a.attnum > 0 AND NOT a.attisdropped`,
  );
  const keys = await rows<{ oid: number; key: string }>(
    `SELECT conrelid AS oid, concat_ws(' ', CASE contype WHEN 'p' THEN 'primary' WHEN 'u' THEN 'unique' ELSE 'foreign' END,
       (SELECT string_agg(attname, ', ' ORDER BY at) FROM unnest(conkey) WITH ORDINALITY AS u (num, at)
        JOIN pg_attribute ON attrelid = conrelid AND attnum = num),
       CASE WHEN contype = 'f' THEN 'to ' || (SELECT relname FROM pg_class WHERE oid = confrelid) || ' '
         || (SELECT string_agg(attname, ', ' ORDER BY at) FROM unnest(confkey) WITH ORDINALITY AS u (num, at)
             JOIN pg_attribute ON attrelid = confrelid AND attnum = num)
         || CASE confdeltype WHEN 'c' THEN ' cascade' WHEN 'a' THEN ' no action' ELSE ' other action' END END) AS key
     FROM pg_constraint WHERE connamespace = 'parley'::regnamespace AND contype IN ('p', 'u', 'f')`,
  );
  const indexes = await rows<{ oid: number; name: string; unique: boolean; parts: string[]; where: string | null }>(
    `SELECT x.indrelid AS oid, c.relname AS name, x.indisunique AS unique, pg_get_expr(x.indpred, x.indrelid) AS where,
       (SELECT array_agg(pg_get_indexdef(x.indexrelid, k, false) || CASE WHEN x.indoption[k - 1] & 1 = 1 THEN ' DESC' ELSE '' END ORDER BY k)
        FROM generate_series(1, x.indnkeyatts::int) AS k) AS parts
     FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid
     WHERE c.relnamespace = 'parley'::regnamespace AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = x.indexrelid)`,
  );
  const of = (oid: number) => (row: { oid: number }) => row.oid === oid;
  return new Map(
    tables.map(({ oid, name }) => [
      name,
      {
        columns: columns.filter(of(oid)).map(({ column }) => column),
        keys: keys
          .filter(of(oid))
          .map(({ key }) => key)
          .sort(),
        indexes: indexes
          .filter(of(oid))
          .map(({ name: index, unique, parts, where }) => {
            const only = where === null ? "" : ` where ${condition(where)}`;
            return `${index} ${unique ? "unique " : ""}${parts.map(condition).join(", ")}${only}`;
          })
          .sort(),
      },
    ]),
  );
}

test("declares every table as the migrations make it", async () => {
  await using cleanup = new Cleanup();
  const stack = await startStoreStack(cleanup);
  const client = new Client({ connectionString: stack.postgres.ownerUrl });
  await client.connect();
  cleanup.add(() => client.end());
  const found = await migrated(client);
  const exported: unknown[] = Object.values(schema);
  const tables = exported.filter((each) => is(each, PgTable));
  assert.deepEqual(tables.map((table) => getTableConfig(table).name).sort(), [...found.keys()].sort());
  for (const table of tables) {
    const { name } = getTableConfig(table);
    const there = found.get(name);
    const wanted = declared(table);
    assert.deepEqual(
      { ...wanted, columns: wanted.columns.toSorted() },
      { ...there, columns: there?.columns.toSorted() },
      name,
    );
  }
});
