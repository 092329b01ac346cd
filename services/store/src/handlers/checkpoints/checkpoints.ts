// File checkpoints: rows about files whose content the tool-runner stores. Every write is idempotent by its own key.
import { store, textOf, WireError, type CapturedDocument, type CapturedFile } from "@parley/contracts";
import { oneLine } from "@parley/kit";
import { DatabaseError } from "pg";
import { withClient, type Database, type PoolClient } from "../../db/database.ts";
import { requireOpenCall } from "../../grants.ts";
import { singleRow } from "../../db/operation.ts";
import { checkPermit, withRewindPermit, type PermittedRewind } from "./rewind-permits.ts";
import type { Handlers } from "../handler.ts";

const pageFiles = store.checkpointPageFiles;
/** Characters of the user's text in a list. */
const shownCharacters = 80;

// A checkpoint belongs to the root turn of a user, so a sub-agent's turn is mapped to it.
const track = {
  name: "checkpoint-track",
  text: `
    WITH target AS (
      SELECT coalesce((SELECT coalesce(root_turn_id, id) FROM parley.turns WHERE id = $1), $1::uuid) AS id
    ), busy AS (
      SELECT FROM parley.rewinds WHERE state = 'running' AND expires_at > now() AND id <> $1
    ), made AS (
      INSERT INTO parley.checkpoints (id, session_id, kind, at)
      SELECT t.id, t.session_id, 'turn', t.started_at FROM parley.turns t, target
      WHERE t.id = target.id AND NOT EXISTS (SELECT FROM busy)
      ON CONFLICT (id) DO NOTHING
    ), kept AS (
      INSERT INTO parley.checkpoint_files (checkpoint_id, path, kind, sha256, size, mode, reason)
      SELECT target.id, f.path, f.kind, f.sha256, f.size, f.mode, f.reason
      FROM target, json_to_recordset($2::json) AS f(path text, kind text, sha256 text, size bigint, mode integer, reason text)
      WHERE NOT EXISTS (SELECT FROM busy)
      -- In one order, so that two writers of the same paths cannot deadlock.
      ORDER BY f.path COLLATE "C"
      ON CONFLICT (checkpoint_id, path) DO NOTHING
    )
    SELECT EXISTS (SELECT FROM busy) AS rewinding`,
};

/** Versions of documents that turns of session $1 wrote, or turns of their sub-agents. */
const documentsByTurns = `
  SELECT d.path, d.version, r.id AS root_id, r.started_at AS at
  FROM parley.documents d
  JOIN parley.turns t ON t.id = d.turn_id
  JOIN parley.turns r ON r.id = coalesce(t.root_turn_id, t.id)
  WHERE r.session_id = $1`;

interface ListedRow {
  id: string;
  kind: "turn" | "rewind";
  at: string;
  parts: string | null;
  files: number;
}

export const checkpointHandlers = {
  async checkpointList({ database }, input) {
    const { rows } = await database.query<ListedRow>(
      `WITH touched AS (
         SELECT c.id, c.kind, c.at FROM parley.checkpoints c
         JOIN parley.checkpoint_files f ON f.checkpoint_id = c.id WHERE c.session_id = $1
         UNION ALL
         SELECT c.id, c.kind, c.at FROM parley.checkpoints c
         JOIN parley.checkpoint_documents d ON d.checkpoint_id = c.id WHERE c.session_id = $1
         UNION ALL
         SELECT DISTINCT ON (w.root_id, w.path) w.root_id, 'turn', w.at FROM (${documentsByTurns}) AS w
       )
       SELECT c.id, c.kind, c.at, i.parts, count(*)::int AS files FROM touched c
       LEFT JOIN parley.turns t ON t.id = c.id
       LEFT JOIN parley.inbox i ON i.id = t.inbox_id
       GROUP BY c.id, c.kind, c.at, i.id ORDER BY c.at DESC, c.id DESC LIMIT $2`,
      [input.sessionId, input.limit],
    );
    return {
      checkpoints: rows.map((row) => ({
        checkpointId: row.id,
        kind: row.kind,
        at: row.at,
        text: row.parts === null ? "" : beginning(row.parts),
        files: row.files,
      })),
    };
  },

  async checkpointUnreferenced({ database }, input) {
    const { rows } = await database.query<{ sha256: string }>(
      `SELECT s.sha256 FROM unnest($1::text[]) AS s(sha256)
       WHERE NOT EXISTS (SELECT FROM parley.checkpoint_files f WHERE f.sha256 = s.sha256)`,
      [input.sha256],
    );
    return { sha256: rows.map((row) => row.sha256) };
  },

  async checkpointTrack({ database, grants }, { by, files: kept }) {
    if ("rewind" in by) return recordFiles(database, (await checkPermit(database, by.rewind)).rewindId, kept);
    const grant = await grants.check(by.grant);
    await withClient(database, (client) => requireOpenCall(client, grant));
    return recordFiles(database, grant.rootTurnId, kept);
  },

  /** The first record of each path, which is its state before all changes. */
  checkpointFiles: withRewindPermit(async ({ database }, permit, { afterPath }) => {
    return withClient(database, async (client) => {
      const since = await startOf(client, permit);
      const { rows } = await client.query<FileRow>(
        `SELECT DISTINCT ON (f.path) f.path, f.kind, f.sha256, f.size, f.mode, f.reason
         FROM parley.checkpoints c JOIN parley.checkpoint_files f ON f.checkpoint_id = c.id
         WHERE c.session_id = $1 AND c.at >= $2 AND c.id <> $3 AND ($4::text IS NULL OR f.path > $4)
         ORDER BY f.path, f.n LIMIT ${pageFiles + 1}`,
        [permit.sessionId, since, permit.rewindId, afterPath],
      );
      return {
        files: rows.slice(0, pageFiles).map(keptFileOf),
        documents: afterPath === null ? await documentsOf(client, permit, since) : [],
        more: rows.length > pageFiles,
      };
    });
  }),
} satisfies Partial<Handlers>;

function beginning(parts: string): string {
  const text = textOf(JSON.parse(parts) as Parameters<typeof textOf>[0]);
  return oneLine(text, shownCharacters);
}

interface FileRow {
  path: string;
  kind: CapturedFile["kind"];
  sha256: string | null;
  size: number | null;
  mode: number | null;
  reason: string | null;
}

/** Records the state of files before the first change of a turn or rewind. Throws NOT_FOUND. */
export async function recordFiles(
  database: Database,
  checkpointId: string,
  kept: readonly CapturedFile[],
): Promise<{ rewinding: boolean }> {
  try {
    const { rows } = await database.query<{ rewinding: boolean }>({
      ...track,
      values: [checkpointId, JSON.stringify(kept)],
    });
    return singleRow(rows);
  } catch (error) {
    // Foreign key violation: the checkpoint does not exist.
    if (error instanceof DatabaseError && error.code === "23503") {
      throw new WireError("NOT_FOUND", `no turn or rewind ${checkpointId}`);
    }
    throw error;
  }
}

/** The version of each document before the first of these changes. */
export async function documentsOf(
  client: PoolClient,
  { sessionId, rewindId }: PermittedRewind,
  since: string,
): Promise<CapturedDocument[]> {
  const { rows } = await client.query<CapturedDocument>(
    `SELECT path, min(version)::int AS version FROM (
       SELECT w.path, w.version - 1 AS version FROM (${documentsByTurns}) AS w WHERE w.at >= $2
       UNION ALL
       SELECT d.path, d.version FROM parley.checkpoint_documents d JOIN parley.checkpoints c ON c.id = d.checkpoint_id
       WHERE c.session_id = $1 AND c.at >= $2 AND c.id <> $3
     ) AS changed GROUP BY path ORDER BY path LIMIT 500`,
    [sessionId, since, rewindId],
  );
  return rows;
}

function keptFileOf({ path, kind, sha256, size, mode, reason }: FileRow): CapturedFile {
  if (kind === "file") return { kind, path, sha256: sha256 ?? "", size: size ?? 0, mode: mode ?? 0 };
  if (kind === "link") return { kind, path, sha256: sha256 ?? "" };
  if (kind === "directory") return { kind, path, mode: mode ?? 0 };
  return kind === "absent" ? { kind, path } : { kind, path, reason: reason ?? "" };
}

/** Start of the turn or rewind as PostgreSQL text, because a JavaScript date would lose the microseconds. Throws NOT_FOUND. */
export async function startOf(
  client: PoolClient,
  { sessionId, turnId }: { sessionId: string; turnId: string },
): Promise<string> {
  const { rows } = await client.query<{ at: string }>(
    `SELECT at::text FROM parley.checkpoints WHERE id = $2 AND session_id = $1
     UNION ALL SELECT started_at::text FROM parley.turns WHERE id = $2 AND session_id = $1`,
    [sessionId, turnId],
  );
  if (rows[0] === undefined) {
    throw new WireError("NOT_FOUND", `this session has no turn or checkpoint ${turnId}`);
  }
  return rows[0].at;
}
