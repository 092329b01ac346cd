// Sign-ins of the web console. Expired rows are deleted whenever a code or a session is added.
import { and, eq, gt, sql } from "drizzle-orm";
import { consoleSessions } from "../../db/schema/index.ts";
import { runTransaction } from "../../db/operation.ts";
import { type Handlers } from "../handler.ts";

interface SessionRow {
  holder: string;
  expires_at: string;
}

export const consoleHandlers = {
  async consoleCodePut({ database }, { sha256, holder, ttlMs }) {
    await database.query("DELETE FROM parley.console_sessions WHERE expires_at < now()");
    await database.query(
      `INSERT INTO parley.console_sessions (sha256, kind, holder, expires_at)
       VALUES ($1, 'code', $2, now() + $3 * interval '1 millisecond') ON CONFLICT (sha256) DO NOTHING`,
      [sha256, holder, ttlMs],
    );
    return {};
  },

  async consoleSessionOpen({ database }, { sha256, ttlMs, from }) {
    const row = await runTransaction(database, async (client) => {
      const opened = async () => {
        const { rows } = await client.query<SessionRow>(
          "SELECT holder, expires_at FROM parley.console_sessions WHERE sha256 = $1 AND kind = 'session' AND expires_at > now()",
          [sha256],
        );
        return rows[0];
      };
      const earlier = await opened();
      if (earlier !== undefined) return earlier;
      let holder: string | undefined;
      if ("holder" in from) holder = from.holder;
      else {
        const used = await client.query<{ holder: string }>(
          "DELETE FROM parley.console_sessions WHERE sha256 = $1 AND kind = 'code' AND expires_at > now() RETURNING holder",
          [from.codeSha256],
        );
        holder = used.rows[0]?.holder;
      }
      // The request was repeated, and its first attempt has used up the code in the meantime.
      if (holder === undefined) return (await opened()) ?? null;
      await client.query("DELETE FROM parley.console_sessions WHERE expires_at < now()");
      const added = await client.query<SessionRow>(
        `INSERT INTO parley.console_sessions (sha256, kind, holder, expires_at)
         VALUES ($1, 'session', $2, now() + $3 * interval '1 millisecond') RETURNING holder, expires_at`,
        [sha256, holder, ttlMs],
      );
      return added.rows[0] ?? null;
    });
    if (row === null) return { session: null };
    return { session: { holder: row.holder, expiresAt: new Date(row.expires_at).toISOString() } };
  },

  async consoleSessionGet({ database }, { sha256 }) {
    const rows = await database.orm
      .select({ holder: consoleSessions.holder, expiresAt: consoleSessions.expiresAt })
      .from(consoleSessions)
      .where(
        and(
          eq(consoleSessions.sha256, sha256),
          eq(consoleSessions.kind, "session"),
          gt(consoleSessions.expiresAt, sql`now()`),
        ),
      );
    return { session: rows[0] ?? null };
  },

  async consoleSessionClose({ database }, { sha256 }) {
    await database.query("DELETE FROM parley.console_sessions WHERE sha256 = $1", [sha256]);
    return {};
  },
} satisfies Partial<Handlers>;
