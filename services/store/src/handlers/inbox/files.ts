// Input whose files are fetched after its commit. One replica at a time claims them under a fence; the first completion counts. Until then
// neither the row nor a later one of its conversation starts or joins a turn.
import {
  inboxReady,
  missingFileText,
  priorityOf,
  WireError,
  type InboundMessage,
  type store,
  type TrustLevel,
} from "@parley/contracts";
import { addReferences, hashesIn } from "../../blobs/references.ts";
import type { Database, PoolClient } from "../../db/database.ts";
import { runTransaction } from "../../db/operation.ts";
import { answerWith } from "../questions/questions.ts";
import type { Handlers, StoreContext } from "../handler.ts";

type Parts = InboundMessage["parts"];
type PendingFile = Extract<Parts[number], { type: "pending_file" }>;

/**
 * SQL condition: this row of `parley.inbox` waits for files of its own or of an earlier row of its conversation. Messages that are
 * coalesced wait for each other in any order.
 */
export function waitsForFiles(row: string): string {
  return `EXISTS (
    SELECT FROM parley.inbox f WHERE f.session_id = ${row}.session_id AND f.files_due IS NOT NULL AND f.state = 'queued'
      AND f.channel = ${row}.channel AND f.account = ${row}.account AND f.conversation = ${row}.conversation
      AND (f.seq <= ${row}.seq OR (f.mode = 'coalesce' AND ${row}.mode = 'coalesce' AND f.sender = ${row}.sender)))`;
}

function isPendingFile(part: Parts[number]): part is PendingFile {
  return part.type === "pending_file";
}

interface ClaimedRow {
  inboxId: string;
  channel: string;
  account: string;
  fence: number;
  parts: string;
  dueInMs: number;
}

export const fileHandlers = {
  async fileClaim({ database }, { accounts, ttlMs, limit }) {
    const { rows } = await database.query<ClaimedRow>(
      `UPDATE parley.inbox SET files_fence = files_fence + 1, files_claimed_until = now() + $2 * interval '1 millisecond'
       WHERE id IN (
         SELECT id FROM parley.inbox
         WHERE files_due > now() AND state = 'queued' AND files_claimed_until <= now() AND channel || ':' || account = ANY($1)
         ORDER BY received_at LIMIT $3 FOR UPDATE SKIP LOCKED
       )
       RETURNING id AS "inboxId", channel, account, files_fence AS fence, parts,
                 (extract(epoch FROM files_due - now()) * 1000)::int AS "dueInMs"`,
      [accounts, ttlMs, limit],
    );
    return {
      messages: rows.map(({ parts, ...row }): store.PendingFiles => ({
        ...row,
        files: (JSON.parse(parts) as Parts).filter(isPendingFile),
      })),
    };
  },

  async fileRenew({ database }, { inboxId, fence, ttlMs }) {
    const { rowCount } = await database.query(
      `UPDATE parley.inbox SET files_claimed_until = now() + $3 * interval '1 millisecond'
       WHERE id = $1 AND files_fence = $2 AND files_due IS NOT NULL AND state = 'queued'`,
      [inboxId, fence, ttlMs],
    );
    if (rowCount !== 1) throw new WireError("FENCED", `files of ${inboxId}: fence ${fence} is no longer valid`);
    return {};
  },

  async fileComplete(context, { inboxId, fence, parts }) {
    const rest = [...parts];
    return { completed: await complete(context, inboxId, fence, () => rest.shift()) };
  },
} satisfies Partial<Handlers>;

/** Replaces files that are overdue by notes, so that a conversation never waits for them for long. */
export async function replaceOverdueFiles(context: Pick<StoreContext, "database" | "bus">): Promise<void> {
  const { rows } = await context.database.query<{ id: string; fence: number }>({
    name: "files-overdue",
    text: "SELECT id, files_fence AS fence FROM parley.inbox WHERE files_due <= now() AND state = 'queued' LIMIT 20",
  });
  const note = ({ kind, name }: PendingFile) => ({
    type: "text" as const,
    text: missingFileText(kind, name, "it could not be fetched in time"),
  });
  for (const { id, fence } of rows) await complete(context, id, fence, note);
}

/** Returns false when the fence is no longer valid or the row is no longer queued. */
async function complete(
  { database, bus }: { database: Database; bus: StoreContext["bus"] },
  inboxId: string,
  fence: number,
  replacement: (file: PendingFile) => Parts[number] | undefined,
): Promise<boolean> {
  const ready = await runTransaction(database, (client) => completeRow(client, inboxId, fence, replacement));
  // Of a completed row, too: a crash can have ended an earlier attempt before its message became an answer.
  await answerWith(database, bus, inboxId);
  if (ready === undefined) return false;
  // After an answer, too: later messages of the conversation have waited for its files.
  bus.publish(inboxReady, ready);
  return true;
}

async function completeRow(
  client: PoolClient,
  inboxId: string,
  fence: number,
  replacement: (file: PendingFile) => Parts[number] | undefined,
): Promise<store.InboxReady | undefined> {
  // Lock order: the session before its queue.
  await client.query(
    "SELECT FROM parley.sessions WHERE id = (SELECT session_id FROM parley.inbox WHERE id = $1) FOR UPDATE",
    [inboxId],
  );
  const { rows } = await client.query<{
    session_id: string;
    parts: string;
    mode: string;
    trust: TrustLevel;
    window_ms: number;
  }>(
    `SELECT session_id, parts, mode, trust, greatest(0, extract(epoch FROM ready_at - now()) * 1000)::int AS window_ms FROM parley.inbox
     WHERE id = $1 AND state = 'queued' AND files_due IS NOT NULL AND files_fence = $2 FOR UPDATE`,
    [inboxId, fence],
  );
  const row = rows[0];
  if (row === undefined) return undefined;
  const parts = (JSON.parse(row.parts) as Parts).map((part) => {
    if (!isPendingFile(part)) return part;
    const replaced = replacement(part);
    if (replaced === undefined) throw new WireError("INVALID_INPUT", "there are more missing files than parts");
    return replaced;
  });
  await addReferences(client, row.session_id, hashesIn(parts.filter((part) => part.type === "blob")));
  await client.query("UPDATE parley.inbox SET parts = $2, files_due = NULL, files_claimed_until = NULL WHERE id = $1", [
    inboxId,
    JSON.stringify(parts),
  ]);
  return {
    sessionId: row.session_id,
    priority: priorityOf.user,
    ...(row.window_ms === 0 ? {} : { afterMs: row.window_ms }),
    ...(row.mode === "steer" ? { steers: row.trust } : {}),
  };
}
