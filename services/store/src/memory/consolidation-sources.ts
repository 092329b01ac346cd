// New material for memory consolidation: day notes, conversation notes, and the owner's messages in their own idle conversations. Excludes
// the agent's answers and untrusted input.
import { isUntrustedInput, textOf, type Part } from "@parley/contracts";
import type { PoolClient } from "../db/database.ts";
import { senderOf } from "../db/mappers.ts";
import { scopesByTurn } from "./index-sessions.ts";
import { dayOf } from "./index-documents.ts";
import { noteCandidate, type Candidate } from "./consolidation-input.ts";

/** Maximum notes per call and per query, because each may be long. */
const maxNotes = 20;
/** Messages per query. */
const pageSize = 500;

interface NoteRow {
  path: string;
  version: number;
  content: string;
  authors: string;
  before: string | null;
  part_version: number | null;
  part_line: number | null;
}

/** The oldest notes with changes, by path, including those without relevant lines in between. */
export async function newNotes(client: PoolClient): Promise<Candidate[]> {
  const candidates: Candidate[] = [];
  for (let after = "", full = 0; full < maxNotes;) {
    const page = await notesAfter(client, after);
    candidates.push(...page);
    full += page.filter(({ lines }) => lines.length > 0).length;
    const last = page.at(-1);
    if (last === undefined || page.length < maxNotes) break;
    after = last.place;
  }
  return candidates;
}

async function notesAfter(client: PoolClient, after: string): Promise<Candidate[]> {
  const { rows } = await client.query<NoteRow>(
    `SELECT d.path, d.version, d.content, m.authors, b.content AS before, c.part_version, c.part_line
     FROM parley.documents d JOIN parley.memory_documents m USING (path, version)
     LEFT JOIN parley.memory_consolidated_notes c USING (path)
     LEFT JOIN parley.documents b ON b.path = d.path AND b.version = c.version AND NOT b.deleted
     WHERE d.latest AND NOT d.deleted AND coalesce(c.version, 0) < d.version
       AND d.path ~ '^memory/([^/]+/)*[0-9]{4}-[0-9]{2}-[0-9]{2}[^/]*[.]md$|^memory/conversations/'
       AND d.path > $1
     ORDER BY d.path LIMIT ${maxNotes}`,
    [after],
  );
  return rows.map((row) =>
    noteCandidate({
      path: row.path,
      date: dayOf(row.path),
      version: row.version,
      text: row.content,
      authors: row.authors,
      before: row.before ?? undefined,
      partLine: row.part_version === row.version ? (row.part_line ?? 0) : 0,
    }),
  );
}

interface UtteranceRow {
  session_id: string;
  seq: number;
  turn_id: string;
  parts: string;
  sender: string;
  day: string;
  at: string;
}

type Utterance = Omit<UtteranceRow, "parts" | "sender"> & { text: string };

/** One candidate per day and conversation, in chronological order, up to `maxChars` characters. */
export async function newMessages(client: PoolClient, maxChars: number): Promise<Candidate[]> {
  const utterances: Utterance[] = [];
  let after: { at: string; sessionId: string; seq: number } | undefined;
  for (let chars = 0; chars <= maxChars;) {
    const { rows } = await client.query<UtteranceRow>(
      `SELECT m.session_id, m.seq, m.turn_id, m.parts, m.sender, to_char(m.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, m.created_at::text AS at
       FROM parley.sessions s LEFT JOIN parley.memory_consolidated_sessions c ON c.session_id = s.id
       JOIN parley.messages m ON m.session_id = s.id AND m.seq > coalesce(c.seq, 0) AND m.role = 'user' AND m.sender IS NOT NULL
       JOIN parley.turns t ON t.id = m.turn_id AND t.trust = 'owner' AND t.state <> 'running'
       WHERE s.parent_id IS NULL AND s.seq > coalesce(c.seq, 0)
         AND ($1::timestamptz IS NULL OR (m.created_at, m.session_id, m.seq) > ($1::timestamptz, $2::uuid, $3::bigint))
       ORDER BY m.created_at, m.session_id, m.seq LIMIT ${pageSize}`,
      [after?.at ?? null, after?.sessionId ?? null, after?.seq ?? null],
    );
    const scopes = await scopesByTurn(client, [...new Set(rows.map((row) => row.turn_id))]);
    for (const { parts: written, sender, ...row } of rows) {
      const parts = JSON.parse(written) as Part[];
      // Group conversations have no single owner's scope and are excluded.
      const own = scopes.get(row.turn_id) === "said:owner";
      const text = own && !isUntrustedInput(senderOf(sender), parts) ? textOf(parts) : "";
      chars += text.length;
      utterances.push({ ...row, text });
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < pageSize) break;
    after = { at: last.at, sessionId: last.session_id, seq: last.seq };
  }
  return [...Map.groupBy(utterances, (row) => `${row.day} ${row.session_id}`).values()].flatMap(conversationDay);
}

function conversationDay(rows: readonly Utterance[]): Candidate[] {
  const first = rows[0];
  if (first === undefined) return [];
  const upTo = (seq: number) => ({ kind: "conversation" as const, sessionId: first.session_id, seq });
  return [
    {
      place: `sessions/${first.session_id}`,
      date: first.day,
      lines: rows.filter(({ text }) => text.trim() !== "").map(({ seq, text }) => ({ number: seq, text })),
      whole: upTo(Math.max(...rows.map(({ seq }) => seq))),
      upTo,
    },
  ];
}
