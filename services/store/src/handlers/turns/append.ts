// Appends to a running turn's conversation between two model calls: results, the loop's notes, input that joins.
import { WireError, type OutputOf, type store, type TrustLevel } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import { otherAddresses } from "../../db/mappers.ts";
import { runOperation } from "../../db/operation.ts";
import { lockTurn } from "./end.ts";
import { checkResults, deliverResults, lockOpenCalls, rewriteResults, settleOpenCalls } from "../steps/open-calls.ts";
import { waitsForFiles } from "../inbox/files.ts";
import { SessionLog } from "../sessions/log.ts";
import type { Handlers } from "../handler.ts";

type Output = OutputOf<typeof store.turnAppend>;

/** Maximum stored bytes of input that one request absorbs, because the reply contains them together with the results. */
const absorbBytes = 128 * 1024;

export const appendHandlers = {
  turnAppend({ database }, input) {
    return runOperation<Output>(database, input, {
      name: "append",
      async run(client) {
        const { turnId } = input;
        const turn = await lockTurn(client, turnId, input.epoch);
        const log = new SessionLog(client, turn.sessionId, turnId);
        await rewriteResults(client, turnId, input.rewritten);
        const open = await lockOpenCalls(client, turnId);
        const started = open.filter((step) => step.result !== null || step.state !== "intended");
        checkResults(turnId, input.skipped === null ? open : started, input.results);
        await deliverResults(
          client,
          log,
          turnId,
          await settleOpenCalls(client, open, input.skipped ?? ""),
          input.tainted,
        );
        for (const note of input.notes) await log.append("user", note, null, { tainted: input.tainted });
        // A stopped turn answers nothing: input that waits gets the next turn.
        const takes = input.absorb && !turn.exclusive && !turn.cancelRequested;
        const taken = takes ? await absorb(client, log, turnId, turn) : [];
        if (log.events.length > 0) await client.query("UPDATE parley.turns SET attempts = 1 WHERE id = $1", [turnId]);
        const known = await client.query<{ reply_to: string | null }>(
          "SELECT reply_to FROM parley.inbox WHERE turn_id = $1 ORDER BY seq",
          [turnId],
        );
        const result: Output = {
          events: log.events,
          inboxIds: taken,
          alsoTo: otherAddresses(
            turn.replyTo,
            known.rows.map((row) => row.reply_to),
          ),
        };
        return { result, memo: result };
      },
    });
  },
} satisfies Partial<Handlers>;

const joining = {
  name: "append-joining",
  text: `
    SELECT id, parts, sender, sent_at, row_number() OVER w = 1 OR sum(octet_length(parts)) OVER w <= $3 AS fits
    FROM (
      SELECT id, seq, parts, sender, sent_at FROM parley.inbox
      WHERE session_id = $1 AND state = 'queued' AND mode = 'steer' AND trust = $2 AND parent_turn_id IS NULL AND NOT exclusive
        AND NOT ${waitsForFiles("inbox")}
      ORDER BY seq LIMIT 50 FOR UPDATE
    ) AS waiting WINDOW w AS (ORDER BY seq) ORDER BY seq`,
};

/** Adds queued input that may join, oldest first, as much as fits in one reply; returns the rows' ids. */
async function absorb(
  client: PoolClient,
  log: SessionLog,
  turnId: string,
  turn: { sessionId: string; trust: TrustLevel },
): Promise<string[]> {
  // Lock order: the session before its queue.
  await client.query("SELECT FROM parley.sessions WHERE id = $1 FOR UPDATE", [turn.sessionId]);
  const { rows } = await client.query<{
    id: string;
    parts: string;
    sender: string;
    sent_at: string | null;
    fits: boolean;
  }>({ ...joining, values: [turn.sessionId, turn.trust, absorbBytes] });
  const taken = rows.filter((row) => row.fits);
  for (const row of taken) {
    const { rowCount } = await client.query(
      "UPDATE parley.inbox SET state = 'claimed', turn_id = $2 WHERE id = $1 AND state = 'queued'",
      [row.id, turnId],
    );
    if (rowCount !== 1) throw new WireError("CONFLICT", `inbox row ${row.id} is no longer queued`);
    await log.append("user", JSON.parse(row.parts) as Parameters<SessionLog["append"]>[1], null, {
      sender: row.sender,
      sentAt: row.sent_at,
    });
  }
  return taken.map((row) => row.id);
}
