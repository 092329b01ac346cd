// The PostgreSQL server that the test runner starts once for all test files. Each file gets databases of its own, copied from a
// migrated template.
import { randomBytes } from "node:crypto";
import { databaseStatements, type PostgresUrls } from "@parley/local";
import { Client } from "pg";
import { z } from "zod";
import type { Cleanup } from "./stack.ts";

/** The value that the runner puts into the environment of its test processes, as JSON. */
const SharedPostgres = z.object({
  /** The superuser on the database `postgres`. */
  adminUrl: z.string(),
  /** The roles' URLs of the template database. */
  ownerUrl: z.string(),
  storeUrl: z.string(),
});

/** A database of a test; on a shared server `adminUrl` also reaches the databases of other tests. */
export interface TestDatabase extends PostgresUrls {
  /** The superuser on the database `postgres`. */
  readonly adminUrl: string;
}

/** A database of the shared server, dropped by the cleanup; undefined when the runner has not started a server. */
export async function sharedDatabase(cleanup: Cleanup): Promise<TestDatabase | undefined> {
  const given = process.env["PARLEY_TEST_POSTGRES"];
  if (given === undefined) return undefined;
  const { adminUrl, ownerUrl, storeUrl } = SharedPostgres.parse(JSON.parse(given));
  const name = `test_${randomBytes(8).toString("hex")}`;
  await run(adminUrl, databaseStatements(name, new URL(ownerUrl).pathname.slice(1)));
  cleanup.add(() => run(adminUrl, [`DROP DATABASE ${name} WITH (FORCE)`]));
  return { adminUrl, ownerUrl: inDatabase(ownerUrl, name), storeUrl: inDatabase(storeUrl, name) };
}

function inDatabase(url: string, name: string): string {
  const renamed = new URL(url);
  renamed.pathname = `/${name}`;
  return renamed.href;
}

async function run(url: string, statements: readonly string[]): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}
