// Routes: resolving, and binding to new or existing sessions.
import { newId, sessionBound, threadKey, type SessionSummary } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import { overridesOf } from "../../db/mappers.ts";
import { singleRow, runOperation, runTransaction } from "../../db/operation.ts";
import { dropContext } from "../inbox/group-context.ts";
import { dropHeldTexts } from "../outbox/held-texts.ts";
import { titleUntitled } from "./titles.ts";
import { summariesOf } from "./sessions.ts";
import type { Handlers } from "../handler.ts";

interface ResolvedRoute {
  id: string;
  key: string;
  unused: boolean;
  overrides: string | null;
}

/** The session of a route, locked; undefined when there is none yet. */
export async function resolveRoute(client: PoolClient, route: string): Promise<ResolvedRoute | undefined> {
  const { rows } = await client.query<ResolvedRoute>(
    `SELECT id, key, seq = 0 AND inbox_seq = 0 AS unused, overrides FROM parley.sessions
     WHERE id = coalesce((SELECT session_id FROM parley.bindings WHERE route = $1), (SELECT id FROM parley.sessions WHERE key = $1))
     FOR UPDATE`,
    [route],
  );
  return rows[0];
}

/** Binds a route to a session. */
export async function bindRoute(client: PoolClient, route: string, sessionId: string): Promise<void> {
  await client.query(
    `INSERT INTO parley.bindings (route, session_id) VALUES ($1, $2)
     ON CONFLICT (route) DO UPDATE SET session_id = $2, bound_at = now()`,
    [route, sessionId],
  );
}

/** The overrides of the next session of a route: it works in the same folder. */
function overridesAfter(before: ResolvedRoute | undefined): string | null {
  if (before === undefined) return null;
  const { workspace } = overridesOf(before.overrides);
  return JSON.stringify({ ...(workspace === undefined ? {} : { workspace }), start: "clear" });
}

/** Marks a session to which a conversation returns: its next turn runs the SessionStart hooks. */
async function returnTo(client: PoolClient, sessionId: string): Promise<void> {
  const { rows } = await client.query<{ overrides: string | null }>(
    "SELECT overrides FROM parley.sessions WHERE id = $1 AND seq > 0 FOR UPDATE",
    [sessionId],
  );
  const [row] = rows;
  if (row === undefined) return;
  const overrides = JSON.stringify({ ...overridesOf(row.overrides), start: "resume" });
  await client.query("UPDATE parley.sessions SET overrides = $2 WHERE id = $1", [sessionId, overrides]);
}

interface Opened {
  sessionId: string;
  previousId: string | null;
}

export const routeHandlers = {
  async sessionOpen({ database, bus }, input) {
    const { opId, route, title = null } = input;
    const { sessionId, previousId } = await runOperation<Opened>(
      database,
      { opId, epoch: null },
      {
        name: "session_open",
        async run(client) {
          const before = await resolveRoute(client, route);
          await dropContext(client, "route = $1", [route]);
          if (before?.unused === true) {
            await client.query(
              "UPDATE parley.sessions SET title = coalesce($2, title), title_tainted = title_tainted AND $2::text IS NULL, status = 'active', updated_at = now() WHERE id = $1",
              [before.id, title],
            );
            const kept = { sessionId: before.id, previousId: null };
            return { result: kept, memo: kept };
          }
          const id = newId();
          // The first thread of a route has the route's name, so it needs no binding.
          const key = before === undefined ? route : threadKey(route, id);
          await client.query(
            `INSERT INTO parley.sessions (id, key, title, profile, overrides)
             SELECT $1, $2, $3, (SELECT profile FROM parley.sessions WHERE id = $4), $5`,
            [id, key, title, before?.id ?? null, overridesAfter(before)],
          );
          if (before !== undefined) await bindRoute(client, route, id);
          if (before !== undefined && input.archive === true) {
            await client.query("UPDATE parley.sessions SET status = 'archived' WHERE id = $1", [before.id]);
          }
          if (before !== undefined) await dropHeldTexts(client, before.id);
          const opened = { sessionId: id, previousId: before?.id ?? null };
          return { result: opened, memo: opened };
        },
      },
    );
    const session = singleRow(await summariesOf(database, [sessionId]));
    // The session has no messages when it is opened.
    bus.publish(sessionBound, { route, sessionId, seq: 0 });
    return { session, previousId };
  },

  async sessionBind({ database, bus }, { route, session }) {
    await titleUntitled(database);
    const { ids, previousId } = await runTransaction(database, async (client) => {
      const found = await named(client, session.trim().replaceAll("\0", ""));
      const [target] = found;
      if (target === undefined || found.length > 1) return { ids: found, previousId: null };
      const before = await resolveRoute(client, route);
      // Bind even if the key already matches, so that a later session with the route's name does not take over.
      await bindRoute(client, route, target);
      if (before?.id !== target) await returnTo(client, target);
      await client.query("UPDATE parley.sessions SET status = 'active', updated_at = now() WHERE id = $1", [target]);
      return { ids: found, previousId: before === undefined || before.id === target ? null : before.id };
    });
    const sessions: SessionSummary[] = await summariesOf(database, ids);
    const [found, ...others] = sessions;
    if (found === undefined) return { outcome: "not_found" };
    if (others.length > 0) return { outcome: "ambiguous", sessions };
    bus.publish(sessionBound, { route, sessionId: found.sessionId, seq: found.seq });
    return { outcome: "found", session: found, previousId };
  },
} satisfies Partial<Handlers>;

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const lastDigits = /^[0-9a-f]{8}$/i;
/** Maximum candidates with the same title in a reply. */
const maxCandidates = 20;

/** The sessions that a text can refer to; the most specific kind of reference wins. */
async function named(client: PoolClient, text: string): Promise<string[]> {
  const ways: [condition: string, value: string][] = [
    ...(uuid.test(text) ? ([["id = $1::uuid", text]] as [string, string][]) : []),
    ["key = $1", text],
    ...(lastDigits.test(text) ? ([["right(id::text, 8) = $1", text.toLowerCase()]] as [string, string][]) : []),
    ["lower(title) = lower($1)", text],
  ];
  for (const [condition, value] of ways) {
    const { rows } = await client.query<{ id: string }>(
      `SELECT id FROM parley.sessions WHERE parent_id IS NULL AND ${condition} ORDER BY updated_at DESC LIMIT ${maxCandidates}`,
      [value],
    );
    if (rows.length > 0) return rows.map(({ id }) => id);
  }
  return [];
}
