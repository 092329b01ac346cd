// References of sessions to content: referenced content is never deleted.
import { WireError, type Grant, type Part, type ToolResult } from "@parley/contracts";
import type { PoolClient } from "../db/database.ts";

/** The hashes that parts refer to. */
export function hashesIn(parts: readonly Part[]): string[] {
  return parts.flatMap((part) => {
    if (part.type === "blob") return [part.sha256];
    return part.type === "tool_result" ? hashesOf(part) : [];
  });
}

/** Hashes of a result's attachments, sent files and kept files. */
export function hashesOf(result: Pick<ToolResult, "attachments" | "sent" | "kept">): string[] {
  return [...(result.attachments ?? []), ...(result.sent ?? []), ...(result.kept ?? [])].map(({ sha256 }) => sha256);
}

/** Adds references to the existing contents and returns their hashes; missing contents are ignored. */
async function refer(client: PoolClient, sessionId: string, hashes: readonly string[]): Promise<Set<string>> {
  if (hashes.length === 0) return new Set();
  const { rows } = await client.query<{ sha256: string }>(
    `WITH known AS (
       SELECT sha256 FROM parley.blobs WHERE sha256 = ANY($2) AND doomed_at IS NULL ORDER BY sha256 FOR SHARE
     ), kept AS (
       INSERT INTO parley.blob_refs (session_id, sha256) SELECT $1, sha256 FROM known ON CONFLICT DO NOTHING
     )
     SELECT sha256 FROM known`,
    [sessionId, hashes],
  );
  return new Set(rows.map(({ sha256 }) => sha256));
}

/** Adds references for contents of a turn's messages. Missing contents are ignored: reading them fails later. */
export async function addTurnReferences(client: PoolClient, turnId: string, hashes: readonly string[]): Promise<void> {
  if (hashes.length === 0) return;
  const { rows } = await client.query<{ session_id: string }>("SELECT session_id FROM parley.turns WHERE id = $1", [
    turnId,
  ]);
  if (rows[0] !== undefined) await refer(client, rows[0].session_id, hashes);
}

/** Like `refer`, but throws INVALID_INPUT when a content is missing. */
export async function addReferences(client: PoolClient, sessionId: string, hashes: readonly string[]): Promise<void> {
  const known = await refer(client, sessionId, hashes);
  const missing = hashes.find((sha256) => !known.has(sha256));
  if (missing !== undefined) throw new WireError("INVALID_INPUT", `there is no attachment ${missing}`);
}

/** The sessions of one tree of agents, from the session of the user's turn $1 down. */
const treeOfTurn = `
  WITH RECURSIVE tree AS (
    SELECT session_id AS id FROM parley.turns WHERE id = $1
    UNION SELECT s.id FROM parley.sessions s JOIN tree ON s.parent_id = tree.id
  )`;

/** The contents that a call may access: those that a session of its agent tree refers to. */
export async function referredBy(
  client: PoolClient,
  { rootTurnId, sessionId }: Pick<Grant, "rootTurnId" | "sessionId">,
  hashes: readonly string[],
): Promise<Set<string>> {
  if (hashes.length === 0) return new Set();
  const { rows } = await client.query<{ sha256: string }>({
    name: "blob-referred",
    text: `${treeOfTurn} SELECT DISTINCT sha256 FROM parley.blob_refs
           WHERE sha256 = ANY($3) AND session_id IN (SELECT id FROM tree UNION SELECT $2::uuid)`,
    values: [rootTurnId, sessionId, hashes],
  });
  return new Set(rows.map(({ sha256 }) => sha256));
}

/** Throws INVALID_INPUT for content that a call may not access. */
export async function requireReferred(client: PoolClient, grant: Grant, hashes: readonly string[]): Promise<void> {
  const known = await referredBy(client, grant, hashes);
  const missing = hashes.find((sha256) => !known.has(sha256));
  if (missing !== undefined) throw new WireError("INVALID_INPUT", `this session has no attachment ${missing}`);
}

/** For content that a call uploaded, which proves that its session has it. */
export async function referFromSession(client: PoolClient, sessionId: string, sha256: string): Promise<void> {
  await refer(client, sessionId, [sha256]);
}

/** SQL condition: this session, one of its parents or one of its sub-agents refers to the row of `parley.blobs`. */
export function referredByFamily(sessionId: string): string {
  return `EXISTS (
    WITH RECURSIVE above AS (
      SELECT id, parent_id FROM parley.sessions WHERE id = ${sessionId}
      UNION SELECT s.id, s.parent_id FROM parley.sessions s JOIN above ON s.id = above.parent_id
    ), below AS (
      SELECT id FROM parley.sessions WHERE id = ${sessionId}
      UNION SELECT s.id FROM parley.sessions s JOIN below ON s.parent_id = below.id
    )
    SELECT FROM parley.blob_refs r
    WHERE r.sha256 = blobs.sha256 AND r.session_id IN (SELECT id FROM above UNION SELECT id FROM below))`;
}

/** A forked session gets the references of the original. */
export async function copyReferences(client: PoolClient, from: string, to: string): Promise<void> {
  await client.query(
    "INSERT INTO parley.blob_refs (session_id, sha256) SELECT $2, sha256 FROM parley.blob_refs WHERE session_id = $1",
    [from, to],
  );
}
