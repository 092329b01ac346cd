// Named tokens of the API, and the audit log.
import { newId, WireError, type store } from "@parley/contracts";
import { and, desc, eq, gt, isNull, lt, or, sql, type SQL } from "drizzle-orm";
import { apiTokens, auditLog } from "../../db/schema/index.ts";
import { runChange, runOperation, runTransaction, singleRow } from "../../db/operation.ts";
import type { Handlers } from "../handler.ts";

const tokenColumns = {
  name: apiTokens.name,
  scopes: apiTokens.scopes,
  createdAt: apiTokens.createdAt,
  createdBy: apiTokens.createdBy,
  expiresAt: apiTokens.expiresAt,
  usedAt: apiTokens.usedAt,
  revokedAt: apiTokens.revokedAt,
};

const isValid = and(
  isNull(apiTokens.revokedAt),
  or(isNull(apiTokens.expiresAt), gt(apiTokens.expiresAt, sql`now()`)),
) as SQL;

const maxListed = 1_000;

export const tokenHandlers = {
  async tokenCreate({ database }, { name, sha256, scopes, ttlMs, by }) {
    return runTransaction(database, async (client) => {
      await client.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [`token ${name}`]);
      const { rows: same } = await client.query<{ sha256: string }>(
        `SELECT sha256 FROM parley.api_tokens
         WHERE name = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`,
        [name],
      );
      // A repeated request has the same hash.
      if (same[0] !== undefined && same[0].sha256 !== sha256)
        throw new WireError("CONFLICT", `there is a valid token named ${name}; revoke it first`);
      const { rows } = await client.query<store.ApiToken & { scopes: string }>(
        `INSERT INTO parley.api_tokens (sha256, name, scopes, created_by, expires_at)
         VALUES ($1, $2, $3, $4, now() + $5 * interval '1 millisecond')
         ON CONFLICT (sha256) DO UPDATE SET name = excluded.name
         RETURNING name, scopes, created_by AS "createdBy", created_at AS "createdAt", expires_at AS "expiresAt"`,
        [sha256, name, JSON.stringify(scopes), by, ttlMs],
      );
      const row = singleRow(rows);
      const iso = (time: string | null) => (time === null ? null : new Date(time).toISOString());
      return {
        token: {
          ...row,
          scopes,
          createdAt: new Date(row.createdAt).toISOString(),
          expiresAt: iso(row.expiresAt),
          usedAt: null,
          revokedAt: null,
        },
      };
    });
  },

  async tokenList({ database }) {
    const tokens = await database.orm
      .select(tokenColumns)
      .from(apiTokens)
      .orderBy(desc(apiTokens.createdAt))
      .limit(maxListed);
    return { tokens };
  },

  async tokenRevoke({ database }, { opId, name }) {
    return runChange(database, "token_revoke", opId, async (client) => {
      const { rowCount } = await client.query(
        `UPDATE parley.api_tokens SET revoked_at = now()
         WHERE name = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`,
        [name],
      );
      return { revoked: rowCount === 1 };
    });
  },

  async tokenFind({ database }, { sha256 }) {
    const [token = null] = await database.orm
      .select(tokenColumns)
      .from(apiTokens)
      .where(and(eq(apiTokens.sha256, sha256), isValid));
    if (token === null) return { token };
    await database.orm
      .update(apiTokens)
      .set({ usedAt: sql`now()` })
      .where(
        and(
          eq(apiTokens.sha256, sha256),
          or(isNull(apiTokens.usedAt), lt(apiTokens.usedAt, sql`now() - interval '1 minute'`)),
        ),
      );
    return { token };
  },

  async auditAppend({ database }, { opId = newId(), actor, action, target, outcome }) {
    return runOperation<Record<string, never>>(
      database,
      { opId, epoch: null },
      {
        name: "audit",
        async run(client) {
          await client.query("INSERT INTO parley.audit_log (actor, action, target, outcome) VALUES ($1, $2, $3, $4)", [
            actor,
            action,
            JSON.stringify(target),
            outcome,
          ]);
          return { result: {}, memo: {} };
        },
      },
    );
  },

  async auditList({ database }, { before, action, limit }) {
    const entries = await database.orm
      .select()
      .from(auditLog)
      .where(
        and(
          before === undefined ? undefined : lt(auditLog.n, before),
          action === undefined ? undefined : sql`starts_with(${auditLog.action}, ${action})`,
        ),
      )
      .orderBy(desc(auditLog.n))
      .limit(limit);
    return { entries };
  },
} satisfies Partial<Handlers>;
