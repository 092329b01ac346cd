// How a migration file runs. A file is one transaction, unless its first lines contain `-- migration: concurrent` or
// `-- migration: batches`. Pure.

import { omitUndefined } from "@parley/kit";

/** The mode and the statements of a file. */
export interface MigrationFile {
  /**
   * `transaction`: all statements in one transaction. `concurrent`: each statement outside of a transaction, for indexes on tables in use.
   * `batches`: the one statement is repeated, each time in a transaction of its own, until it changes no row.
   */
  mode: "transaction" | "concurrent" | "batches";
  statements: readonly string[];
  /** The oldest version that works after this migration; undefined: it removes nothing. */
  contractSince?: string;
}

/** Throws when a `batches` file has not exactly one statement, and when a `concurrent` file could not be repeated after an interruption. */
export function parseMigration(text: string): MigrationFile {
  const contractSince = /^-- migration: contract since (\d+\.\d+\.\d+)$/m.exec(text)?.[1];
  return { ...parseMode(text), ...omitUndefined({ contractSince }) };
}

function parseMode(text: string): MigrationFile {
  const mode = /^-- migration: (concurrent|batches)$/m.exec(text)?.[1];
  if (mode === undefined) return { mode: "transaction", statements: [text] };
  const statements = text
    .replaceAll(/--.*$/gm, "")
    .split(/;\s*$/m)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "");
  if (mode === "batches") {
    if (statements.length !== 1) throw new Error("a migration in batches has exactly one statement");
    return { mode, statements };
  }
  for (const statement of statements) {
    if (!/^(CREATE (UNIQUE )?INDEX CONCURRENTLY IF NOT EXISTS|DROP INDEX CONCURRENTLY IF EXISTS)\s/.test(statement))
      throw new Error(`a concurrent migration may run again, so it cannot contain: ${statement.slice(0, 80)}`);
  }
  return { mode: "concurrent", statements };
}
