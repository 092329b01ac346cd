// The tables of the schema as compressed files in PostgreSQL's COPY format, one a table.
import { createReadStream, createWriteStream } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import type { Client } from "pg";
import { from as copyFrom, to as copyTo } from "pg-copy-streams";
import type { Doing } from "./progress.ts";

/** Written by the migrations themselves. */
const ownTable = "schema_migrations";

interface TableRow {
  name: string;
  columns: string;
}

/** Tables with their columns; PostgreSQL computes generated columns. */
async function tablesOf(client: Client): Promise<TableRow[]> {
  const { rows } = await client.query<TableRow>(
    `SELECT c.relname AS name, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) AS columns
     FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
     WHERE c.relnamespace = 'parley'::regnamespace AND c.relkind = 'r' AND c.relname <> $1 GROUP BY c.relname ORDER BY c.relname`,
    [ownTable],
  );
  return rows;
}

const fileOf = (folder: string, table: string) => join(folder, `${table}.copy.gz`);

/** Writes every table into the folder, as the client's transaction sees it. Returns the number of rows by table. */
export async function writeTables(client: Client, folder: string, doing: Doing): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const tables = await tablesOf(client);
  for (const [index, { name, columns }] of tables.entries()) {
    doing(() => `database: table ${index + 1} of ${tables.length}, ${name}`);
    const rows = client.query(copyTo(`COPY (SELECT ${columns} FROM parley.${name}) TO STDOUT`));
    await pipeline(rows, createGzip({ level: 1 }), createWriteStream(fileOf(folder, name), { mode: 0o600 }));
    counts[name] = rows.rowCount ?? 0;
  }
  return counts;
}

/** Replaces the rows of every table by those of the folder, inside the client's transaction. Foreign keys are checked at the end. */
export async function readTables(client: Client, folder: string, doing: Doing): Promise<void> {
  const { rows: keys } = await client.query<{ table: string; name: string; definition: string }>(
    `SELECT conrelid::regclass::text AS table, quote_ident(conname) AS name, pg_get_constraintdef(oid) AS definition
     FROM pg_constraint WHERE contype = 'f' AND connamespace = 'parley'::regnamespace`,
  );
  for (const { table, name } of keys) await client.query(`ALTER TABLE ${table} DROP CONSTRAINT ${name}`);
  const indexes = await dropIndexes(client);
  const tables = await tablesOf(client);
  await switchTriggers(client, "DISABLE");
  await client.query(`TRUNCATE ${tables.map(({ name }) => `parley.${name}`).join(", ")}`);
  for (const [index, { name, columns }] of tables.entries()) {
    doing(() => `database: table ${index + 1} of ${tables.length}, ${name}`);
    const target = client.query(copyFrom(`COPY parley.${name} (${columns}) FROM STDIN`));
    await pipeline(createReadStream(fileOf(folder, name)), createGunzip(), target);
  }
  await switchTriggers(client, "ENABLE");
  for (const [index, { name, definition }] of indexes.entries()) {
    doing(() => `database: index ${index + 1} of ${indexes.length}, ${name}`);
    await client.query(definition);
  }
  for (const { table, name, definition } of keys)
    await client.query(`ALTER TABLE ${table} ADD CONSTRAINT ${name} ${definition}`);
}

/** For the sort of an index; PostgreSQL's default of 64 MB sorts large ones on disk. */
const indexMemory = "256MB";

/**
 * Removes the indexes that no constraint needs, and returns how to create them: an index over words is created many times faster from a filled
 * table than row by row.
 */
async function dropIndexes(client: Client): Promise<{ name: string; definition: string }[]> {
  const { rows } = await client.query<{ name: string; definition: string }>(
    `SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS definition
     FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
     WHERE c.relnamespace = 'parley'::regnamespace AND c.relkind = 'r'
       AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = i.indexrelid) ORDER BY name`,
  );
  await client.query(`SET LOCAL maintenance_work_mem = '${indexMemory}'`);
  for (const { name } of rows) await client.query(`DROP INDEX ${name}`);
  return rows;
}

/** Triggers that refuse changes would refuse the restored rows, too. */
async function switchTriggers(client: Client, state: "ENABLE" | "DISABLE"): Promise<void> {
  const { rows } = await client.query<{ table: string }>(
    `SELECT DISTINCT tgrelid::regclass::text AS table FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid
     WHERE NOT tgisinternal AND c.relnamespace = 'parley'::regnamespace`,
  );
  for (const { table } of rows) await client.query(`ALTER TABLE ${table} ${state} TRIGGER USER`);
}

/** The last value of every sequence. */
export async function readSequences(client: Client): Promise<Record<string, number>> {
  const { rows } = await client.query<{ name: string; value: string | null }>(
    "SELECT sequencename AS name, last_value AS value FROM pg_sequences WHERE schemaname = 'parley'",
  );
  return Object.fromEntries(rows.map(({ name, value }) => [name, Number(value ?? 0)]));
}

/** Continues the sequences after these values. */
export async function writeSequences(client: Client, values: Readonly<Record<string, number>>): Promise<void> {
  for (const [name, value] of Object.entries(values))
    if (value > 0) await client.query("SELECT setval(format('parley.%I', $1::text)::regclass, $2)", [name, value]);
}
