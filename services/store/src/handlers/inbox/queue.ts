// A session's queue for people: listing, editing, cancelling and releasing queued input.
import { inboxReady, priorityOf, textOf, type Part, type QueuedMessage, type TrustLevel } from "@parley/contracts";
import { senderOf } from "../../db/mappers.ts";
import { runChange } from "../../db/operation.ts";
import { historyBytes } from "../sessions/history.ts";
import type { Handlers } from "../handler.ts";

const previewChars = 2_000;

interface Row {
  id: string;
  parts: string;
  sender: string;
  mode: QueuedMessage["mode"];
  priority: number;
  received_at: string;
}

export const queueHandlers = {
  async inboxList({ database }, input) {
    const { rows } = await database.query<Row>(
      `SELECT id, parts, sender, mode, priority, received_at FROM parley.inbox
       WHERE session_id = $1 AND state = 'queued' ORDER BY CASE WHEN $3 THEN 0 ELSE priority END, seq LIMIT $2 + 1`,
      [input.sessionId, input.limit, input.order === "arrival"],
    );
    const shown = fitting(rows.slice(0, input.limit).map(queuedOf));
    return { rows: shown, more: rows.length > shown.length };
  },

  async inboxEdit({ database, bus }, { opId, inboxId, change }) {
    const changed = await runChange(database, "inbox_edit", opId, async (client) => {
      // A claim locks the session while it takes rows, so a changed row is never claimed with its old content.
      await client.query(
        "SELECT FROM parley.sessions WHERE id = (SELECT session_id FROM parley.inbox WHERE id = $1) FOR UPDATE",
        [inboxId],
      );
      const [column, value] =
        change.do === "cancel"
          ? ["state", "cancelled"]
          : change.do === "text"
            ? ["parts", JSON.stringify([{ type: "text", text: change.text }])]
            : ["mode", change.mode];
      const { rows } = await client.query<{ sessionId: string; trust: TrustLevel }>(
        `UPDATE parley.inbox SET ${column} = $2${change.do === "text" ? ", files_due = NULL" : ""} WHERE id = $1 AND state = 'queued' AND parent_turn_id IS NULL AND ($3 OR NOT exclusive)
         RETURNING session_id AS "sessionId", trust`,
        [inboxId, value, change.do !== "mode"],
      );
      return rows[0];
    });
    // A row with the mode `steer` may join the running turn.
    if (changed !== undefined && change.do === "mode" && change.mode === "steer") {
      const { sessionId, trust: steers } = changed;
      bus.publish(inboxReady, { sessionId, priority: priorityOf.user, steers });
    }
    return { changed: changed !== undefined };
  },

  async inboxFlush({ database, bus }, { sessionId }) {
    const { rowCount } = await database.query(
      "UPDATE parley.inbox SET ready_at = now() WHERE session_id = $1 AND state = 'queued' AND ready_at > now()",
      [sessionId],
    );
    const flushed = rowCount ?? 0;
    if (flushed > 0) bus.publish(inboxReady, { sessionId, priority: priorityOf.user });
    return { flushed };
  },
} satisfies Partial<Handlers>;

function queuedOf(row: Row): QueuedMessage {
  return {
    inboxId: row.id,
    text: textOf(JSON.parse(row.parts) as Part[]).slice(0, previewChars),
    from: senderOf(row.sender),
    mode: row.mode,
    priority: row.priority,
    receivedAt: row.received_at,
  };
}

/** As many as fit in one reply: a hundred previews in a script with multi-byte characters can exceed it. */
function fitting(rows: QueuedMessage[]): QueuedMessage[] {
  let bytes = 0;
  const past = rows.findIndex((row) => (bytes += Buffer.byteLength(JSON.stringify(row))) > historyBytes);
  return past === -1 ? rows : rows.slice(0, past);
}
