// Titles of sessions without one: the beginning of their first message, set when a session is first shown, listed or searched.
import { textOf, type Part } from "@parley/contracts";
import { withClient, type Database } from "../../db/database.ts";
import { isTainted, senderOf } from "../../db/mappers.ts";

const titleCharacters = 60;
/** Titles set per call; the rest follows with the next call. */
const batch = 500;

/** The beginning of a text in one line; null for blank text. */
function titleOf(text: string): string | null {
  // PostgreSQL's text type does not allow NUL.
  const line = text.replaceAll("\0", " ").replace(/\s+/g, " ").trim();
  const characters = Array.from(line.isWellFormed() ? line : line.toWellFormed());
  if (characters.length === 0) return null;
  return characters.length <= titleCharacters
    ? characters.join("")
    : `${characters
        .slice(0, titleCharacters - 1)
        .join("")
        .trimEnd()}…`;
}

/** Sets the titles of sessions without one. */
export async function titleUntitled(database: Database): Promise<void> {
  await withClient(database, async (client) => {
    const { rows } = await client.query<{ id: string; parts: string; sender: string | null; tainted: boolean | null }>(
      `SELECT s.id, m.parts, m.sender, m.tainted FROM parley.sessions s
       JOIN LATERAL (SELECT parts, sender, tainted FROM parley.messages WHERE session_id = s.id AND role = 'user' ORDER BY seq LIMIT 1) m ON true
       WHERE s.parent_id IS NULL AND s.title IS NULL AND s.message_count > 0 LIMIT ${batch}`,
    );
    const named = rows.flatMap((row) => {
      const parts = JSON.parse(row.parts) as Part[];
      const title = titleOf(textOf(parts));
      const from = row.sender === null ? undefined : senderOf(row.sender);
      return title === null ? [] : [{ id: row.id, title, tainted: isTainted(row.tainted, from, parts) }];
    });
    if (named.length === 0) return;
    await client.query(
      `UPDATE parley.sessions SET title = named.title, title_tainted = named.tainted
       FROM unnest($1::uuid[], $2::text[], $3::boolean[]) AS named (id, title, tainted)
       WHERE sessions.id = named.id AND sessions.title IS NULL`,
      [named.map(({ id }) => id), named.map(({ title }) => title), named.map(({ tainted }) => tainted)],
    );
  });
}
