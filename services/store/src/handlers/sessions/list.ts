// Lists and searches sessions: conditions on their titles, messages, channels, people and activity.
import { textOf, type InputOf, type Part, type store } from "@parley/contracts";
import { and, desc, eq, isNull, sql, type SQL } from "drizzle-orm";
import type { Database } from "../../db/database.ts";
import { inbox, messages, sessions, turns } from "../../db/schema/index.ts";
import type { Handlers } from "../handler.ts";
import { selectSummaries, summaryOf } from "./sessions.ts";
import { titleUntitled } from "./titles.ts";

type Query = InputOf<typeof store.sessionList>;

/** Characters of an excerpt before and after the first word that was found. */
const excerptBefore = 60;
const excerptAfter = 140;

export const listHandlers = {
  async sessionList({ database }, input) {
    await titleUntitled(database);
    const rows = await selectSummaries(database)
      .where(and(...conditionsOf(input)))
      .orderBy(desc(sessions.updatedAt), desc(sessions.id))
      .limit(input.limit);
    const found = rows.map(summaryOf);
    const ids = found.map(({ sessionId }) => sessionId);
    const { text, messages: inMessages, parentId } = input;
    return {
      sessions: found,
      ...(text === undefined || inMessages !== true ? {} : { matches: await newestMatches(database, ids, text) }),
      ...(parentId === undefined ? {} : { tasks: await tasksOf(database, ids) }),
    };
  },
} satisfies Partial<Handlers>;

/** The calls that gave sub-agents their tasks, of those whose turn has begun. */
async function tasksOf(database: Database, ids: readonly string[]): Promise<{ sessionId: string; callId: string }[]> {
  const { rows } = await database.query<{ sessionId: string; callId: string }>(
    `SELECT t.session_id AS "sessionId", s.call_id AS "callId" FROM parley.turns t
     JOIN parley.steps s ON s.turn_id = t.parent_turn_id AND s.n = t.parent_step
     WHERE t.session_id = ANY($1) AND s.call_id IS NOT NULL ORDER BY t.id`,
    [ids],
  );
  return rows;
}

function conditionsOf(input: Query): (SQL | undefined)[] {
  const { before, status, parentId, text, activity, channel, person, subagents = false, calls = false } = input;
  const after = sql`(${sessions.updatedAt}, ${sessions.id}) < (SELECT updated_at, id FROM parley.sessions WHERE id = ${before ?? null})`;
  const children = subagents ? undefined : isNull(sessions.parentId);
  return [
    before === undefined ? undefined : after,
    status === undefined ? undefined : eq(sessions.status, status),
    calls ? undefined : eq(sessions.singleCall, false),
    parentId === undefined ? children : eq(sessions.parentId, parentId),
    text === undefined ? undefined : containing(text, input.messages === true),
    activity === undefined ? undefined : activityIs[activity],
    channel === undefined ? undefined : hasInput(sql`${inbox.channel} = ${channel}`),
    person === undefined ? undefined : hasInput(isFrom(person)),
  ];
}

const queued = sql`EXISTS (SELECT FROM ${inbox} WHERE ${inbox.sessionId} = ${sessions.id} AND ${inbox.state} = 'queued')`;
const activityIs: Readonly<Record<NonNullable<Query["activity"]>, SQL>> = {
  running: sql`${turns.parked} IS FALSE`,
  waiting: sql`${turns.parked} IS TRUE`,
  queued,
  idle: sql`${turns.id} IS NULL AND NOT ${queued}`,
};

function hasInput(condition: SQL): SQL {
  return sql`EXISTS (SELECT FROM ${inbox} WHERE ${inbox.sessionId} = ${sessions.id} AND ${condition})`;
}

/** Most rows are decided by the text of their JSON; a NUL in a name, which PostgreSQL cannot decode, is no match. */
function isFrom(person: string): SQL {
  const contact = sql`${inbox.sender}::json -> 'contact'`;
  return sql`CASE WHEN strpos(lower(${inbox.sender}), lower(${JSON.stringify(person).slice(1, -1)})) > 0 AND strpos(${inbox.sender}, '\\u0000') = 0
    THEN ${contact} ->> 'id' = ${person} OR strpos(lower(${contact} ->> 'name'), lower(${person})) > 0 ELSE false END`;
}

/** The words of the text, each as the beginning of a word. Null, which finds nothing: it has no words. */
function wordQuery(text: string): SQL {
  return sql`(SELECT to_tsquery('simple', string_agg(quote_literal(lexeme) || ':*', ' & ')) FROM unnest(to_tsvector('simple', ${text})))`;
}

function containing(text: string, inMessages: boolean): SQL {
  const title = sql`strpos(lower(${sessions.title}), lower(${text})) > 0`;
  if (!inMessages) return title;
  const matches = sql`${sessions.id} IN (SELECT m.session_id FROM parley.messages m
    WHERE m.role <> 'tool' AND parley.message_words(m.parts) @@ ${wordQuery(text)})`;
  return sql`(${title} OR ${matches})`;
}

async function newestMatches(database: Database, ids: readonly string[], text: string): Promise<store.SessionMatch[]> {
  if (ids.length === 0) return [];
  const rows = await database.orm
    .selectDistinctOn([messages.sessionId], {
      sessionId: messages.sessionId,
      seq: messages.seq,
      role: messages.role,
      createdAt: messages.createdAt,
      parts: messages.parts,
    })
    .from(messages)
    .where(
      sql`${messages.sessionId} = ANY(${sql.param(ids)}::uuid[]) AND ${messages.role} <> 'tool' AND parley.message_words(${messages.parts}) @@ ${wordQuery(text)}`,
    )
    .orderBy(messages.sessionId, desc(messages.seq));
  return rows.flatMap(({ parts, role, ...row }) =>
    role === "tool" ? [] : [{ ...row, role, excerpt: excerptOf(parts, text) }],
  );
}

/** The text of a message around the first of the words, in one line. */
function excerptOf(parts: readonly Part[], text: string): string {
  const line = textOf(parts).replaceAll(/\s+/g, " ");
  const lower = line.toLowerCase();
  const places = text
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "")
    .map((word) => lower.indexOf(word))
    .filter((place) => place !== -1);
  const at = Math.min(...places, line.length);
  const from = at === line.length ? 0 : Math.max(0, at - excerptBefore);
  const to = Math.min(line.length, from + excerptBefore + excerptAfter);
  return `${from === 0 ? "" : "…"}${line.slice(from, to).toWellFormed().trim()}${to === line.length ? "" : "…"}`;
}
