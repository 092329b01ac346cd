// Updates the memory index from documents and logs: after each change of a note, at the start, and before each search, so that searches
// never use a stale index.
import { ConfigError } from "@parley/chassis";
import type { MemorySettings } from "@parley/contracts";
import { advisoryLocks } from "../db/advisory-locks.ts";
import { withClient, type Database, type PoolClient } from "../db/database.ts";
import { runTransaction } from "../db/operation.ts";
import { indexDocument, stalePaths } from "./index-documents.ts";
import { indexSession, sessionsBehind } from "./index-sessions.ts";

export type IndexSettings = Pick<MemorySettings, "language" | "sessions">;

export function lockIndex(client: PoolClient): Promise<unknown> {
  return client.query(`SELECT pg_advisory_xact_lock(${advisoryLocks.memoryIndex})`);
}

/** Resolves when everything committed before the call is indexed. */
export async function refreshIndex(database: Database, { language, sessions }: IndexSettings): Promise<void> {
  const stale = await withClient(database, async (client) => ({
    paths: await stalePaths(client, language),
    sessions: sessions ? await sessionsBehind(client, language) : [],
  }));
  for (const path of stale.paths) {
    await runTransaction(database, async (client) => {
      await lockIndex(client);
      await indexDocument(client, language, path);
    });
  }
  for (const sessionId of stale.sessions) {
    for (let more = true; more;) {
      more = await runTransaction(database, async (client) => {
        await lockIndex(client);
        return indexSession(client, language, sessionId);
      });
    }
  }
}

/** Removes conversations from the index after `memory.sessions` was disabled. */
export async function forgetSessions(database: Database): Promise<void> {
  await runTransaction(database, async (client) => {
    await lockIndex(client);
    await client.query("DELETE FROM parley.memory_chunks WHERE session_id IS NOT NULL");
    await client.query("DELETE FROM parley.memory_sessions");
  });
}

/** Throws when PostgreSQL does not support the language. */
export async function requireLanguage(database: Database, language: string): Promise<void> {
  const { rowCount } = await database.pool.query("SELECT FROM pg_ts_config WHERE cfgname = $1", [language]);
  if (rowCount === 0)
    throw new ConfigError(
      `memory.language: this PostgreSQL has no text search configuration "${language}"; list them with \\dF`,
    );
}
