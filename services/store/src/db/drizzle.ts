// Loads Drizzle through its CommonJS build. Node's ES module loader reads the package's manifest (180 KB) again for each of its files,
// which costs 0.6 s and 200 MB at every start.
import { createRequire } from "node:module";
import type * as Core from "drizzle-orm";
import type * as Driver from "drizzle-orm/node-postgres";
import type * as Columns from "drizzle-orm/pg-core";

const load = createRequire(import.meta.url);
const core = load("drizzle-orm") as typeof Core;
const columns = load("drizzle-orm/pg-core") as typeof Columns;
const driver = load("drizzle-orm/node-postgres") as typeof Driver;

export const { and, desc, eq, gt, inArray, isNull, lt, or, sql } = core;
export const { bigint, boolean, integer, pgSchema, smallint, text, timestamp, uuid } = columns;
export const { drizzle } = driver;
