// Memory consolidation: finds the material and applies a model's edit. The new version, the progress and the cost are one commit, so a
// crash leaves either nothing or a completed consolidation.
import {
  authorAt,
  linesOf,
  WireError,
  type DocumentMeta,
  type InputOf,
  type MemoryProgress,
  type OutputOf,
  type store,
} from "@parley/contracts";
import { withClient, type PoolClient } from "../../db/database.ts";
import { leastTrusted, lineAuthors } from "../../memory/authors.ts";
import { refreshIndex, lockIndex } from "../../memory/refresh-index.ts";
import { editLines } from "../../memory/edit-lines.ts";
import { indexDocument } from "../../memory/index-documents.ts";
import { newMessages, newNotes } from "../../memory/consolidation-sources.ts";
import { packInput, withoutEmpty, type Candidate } from "../../memory/consolidation-input.ts";
import { singleRow, runOperation } from "../../db/operation.ts";
import { announce, lockDocuments, requireContent, write } from "../documents/documents.ts";
import type { Handlers } from "../handler.ts";

type Material = OutputOf<typeof store.memoryMaterial>;
type ConsolidateInput = InputOf<typeof store.memoryConsolidate>;
type Edit = Extract<ConsolidateInput["outcome"], { kind: "edit" }>;
type Consolidated = OutputOf<typeof store.memoryConsolidate>;

const path = "MEMORY.md";
/** Maximum UTF-8 bytes of MEMORY.md as JSON: with the material it stays below the bus's limit. */
const maxMemoryBytes = 128 * 1024;

export const consolidationHandlers = {
  async memoryMaterial({ database, memorySettings: settings }, { maxChars, conversations }) {
    await refreshIndex(database, { ...settings, sessions: false });
    return withClient(database, async (client) => {
      const memory = await shownMemory(client);
      const tooLong = Buffer.byteLength(JSON.stringify(memory.lines)) > maxMemoryBytes;
      const today = await spentToday(client);
      if (tooLong) return { memory: { ...memory, lines: [] }, sources: [], progress: [], tooLong, today };
      const candidates = [...(await newNotes(client)), ...(conversations ? await newMessages(client, maxChars) : [])];
      const { full, over } = withoutEmpty(candidates.sort(oldestFirst));
      await pass(client, over);
      return { memory, ...packInput(full, maxChars), tooLong, today };
    });
  },

  async memoryConsolidate(context, input) {
    const { database, memorySettings } = context;
    let saved: DocumentMeta | undefined;
    const answer = await runOperation<Consolidated>(database, input, {
      name: "memory_consolidate",
      async run(client) {
        const { outcome } = input;
        const done =
          outcome.kind === "edit"
            ? await takeIn(client, memorySettings.language, outcome)
            : { answer: { status: "recorded" as const } };
        saved = "saved" in done ? done.saved : undefined;
        await record(client, input, done.answer);
        return { result: done.answer, memo: done.answer };
      },
    });
    if (saved !== undefined) announce(context, saved);
    return answer;
  },
} satisfies Partial<Handlers>;

/** Advances the progress over sources without content. Never moves behind the progress of a concurrent consolidation. */
async function pass(client: PoolClient, over: readonly MemoryProgress[]): Promise<void> {
  const notes = over.flatMap((step) => (step.kind === "note" ? [step] : []));
  await client.query(
    `INSERT INTO parley.memory_consolidated_notes (path, version) SELECT * FROM unnest($1::text[], $2::int[])
     ON CONFLICT (path) DO UPDATE SET version = excluded.version, part_version = NULL, part_line = NULL
     WHERE memory_consolidated_notes.version < excluded.version`,
    [notes.map(({ path: of }) => of), notes.map(({ version }) => version)],
  );
  const sessions = new Map<string, number>();
  for (const step of over) {
    if (step.kind === "conversation")
      sessions.set(step.sessionId, Math.max(step.seq, sessions.get(step.sessionId) ?? 0));
  }
  await client.query(
    `INSERT INTO parley.memory_consolidated_sessions (session_id, seq)
     SELECT s.id, w.seq FROM unnest($1::uuid[], $2::bigint[]) AS w(id, seq) JOIN parley.sessions s ON s.id = w.id
     ON CONFLICT (session_id) DO UPDATE SET seq = greatest(memory_consolidated_sessions.seq, excluded.seq)`,
    [[...sessions.keys()], [...sessions.values()]],
  );
}

/** Sources without a date come first; on the same day, notes come before conversations. */
function oldestFirst(one: Candidate, other: Candidate): number {
  return (one.date ?? "").localeCompare(other.date ?? "");
}

async function shownMemory(client: PoolClient): Promise<Material["memory"]> {
  const { rows } = await client.query<{ version: number; content: string; authors: string }>(
    `SELECT d.version, d.content, m.authors FROM parley.documents d JOIN parley.memory_documents m USING (path, version)
     WHERE d.path = $1 AND d.latest AND NOT d.deleted`,
    [path],
  );
  const row = rows[0];
  if (row === undefined) return { version: 0, lines: [] };
  const lines = linesOf(row.content).map((text, index) => ({
    text: text.trim() !== "" && authorAt(row.authors, index) === "untrusted" ? null : text,
  }));
  return { version: row.version, lines };
}

async function spentToday(client: PoolClient): Promise<Material["today"]> {
  const { rows } = await client.query<{ calls: number; micros: number; unpriced: number }>(
    `SELECT count(*)::int AS calls, coalesce(sum(cost_micros), 0)::bigint AS micros, count(*) FILTER (WHERE cost_micros IS NULL)::int AS unpriced
     FROM parley.memory_consolidations WHERE created_at >= date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'`,
  );
  const { calls, micros, unpriced } = singleRow(rows);
  return { calls, cost: { micros, unpricedCalls: unpriced } };
}

async function takeIn(
  client: PoolClient,
  language: string,
  edit: Edit,
): Promise<{ answer: Consolidated; saved?: DocumentMeta }> {
  await lockDocuments(client);
  await lockIndex(client);
  const authors = await indexDocument(client, language, path);
  const { rows } = await client.query<{ version: number; deleted: boolean; content: string }>(
    "SELECT version, deleted, content FROM parley.documents WHERE path = $1 AND latest",
    [path],
  );
  const current = rows[0]?.deleted === false ? rows[0] : undefined;
  if ((current?.version ?? 0) !== edit.expectedVersion) return { answer: { status: "conflict" } };
  const before = { text: current?.content ?? "", authors };
  const edited = editLines(before, edit);
  if ("problem" in edited) return { answer: { status: "refused", reason: edited.problem } };
  try {
    requireContent(path, edited.text);
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    return { answer: { status: "refused", reason: error.message } };
  }
  await advance(client, edit.progress);
  if (edited.text === before.text || edit.remove.length + edit.add.length === 0)
    return { answer: { status: "unchanged" } };
  const lines = lineAuthors(current === undefined ? undefined : before, edited.text, "agent");
  const written = linesOf(edited.text).flatMap((line, index) => (line.trim() === "" ? [] : [authorAt(lines, index)]));
  const content = { content: edited.text, deleted: false, lineAuthor: "agent" as const };
  const change = await write(client, { path, author: leastTrusted(["agent", ...written]) }, content);
  if (change.status !== "saved") return { answer: { status: "unchanged" } };
  await indexDocument(client, language, path);
  return { answer: { status: "saved", version: change.document.version }, saved: change.document };
}

async function advance(client: PoolClient, progress: readonly MemoryProgress[]): Promise<void> {
  for (const step of progress) {
    if (step.kind === "conversation") {
      // Deleted sessions are skipped.
      await client.query(
        `INSERT INTO parley.memory_consolidated_sessions (session_id, seq) SELECT id, $2 FROM parley.sessions WHERE id = $1
         ON CONFLICT (session_id) DO UPDATE SET seq = greatest(memory_consolidated_sessions.seq, excluded.seq)`,
        [step.sessionId, step.seq],
      );
    } else if (step.toLine === null) {
      await client.query(
        `INSERT INTO parley.memory_consolidated_notes (path, version) VALUES ($1, $2)
         ON CONFLICT (path) DO UPDATE SET version = excluded.version, part_version = NULL, part_line = NULL`,
        [step.path, step.version],
      );
    } else {
      await client.query(
        `INSERT INTO parley.memory_consolidated_notes (path, version, part_version, part_line) VALUES ($1, 0, $2, $3)
         ON CONFLICT (path) DO UPDATE SET part_version = excluded.part_version, part_line = excluded.part_line`,
        [step.path, step.version, step.toLine],
      );
    }
  }
}

async function record(
  client: PoolClient,
  { model, usage, costMicros, outcome }: ConsolidateInput,
  answer: Consolidated,
): Promise<void> {
  const status = outcome.kind === "edit" ? answer.status : outcome.kind;
  const reason = outcome.kind === "edit" ? ("reason" in answer ? answer.reason : null) : outcome.reason;
  await client.query(
    `INSERT INTO parley.memory_consolidations (outcome, reason, version, model, usage, cost_micros) VALUES ($1, $2, $3, $4, $5, $6)`,
    [status, reason, answer.status === "saved" ? answer.version : null, model, JSON.stringify(usage), costMicros],
  );
}
