// Reads a session's messages forwards or backwards, limited to one reply.
import type { Message } from "@parley/contracts";
import { withClient, type PoolClient } from "../../db/database.ts";
import { messageColumns, messageOf, type MessageRow } from "../../db/mappers.ts";
import type { Handlers } from "../handler.ts";

/** Maximum stored bytes in a reply: encoding adds to them, and the bus allows 512 KiB. */
export const historyBytes = 300 * 1024;

/** The newest messages after `afterSeq` (and before `beforeSeq`) that fit; `gap` when older ones were left out. */
export async function newest(
  client: PoolClient,
  sessionId: string,
  range: { afterSeq: number; beforeSeq?: number | undefined; limit?: number; bytes?: number },
): Promise<{ messages: Message[]; gap: boolean }> {
  const limit = range.limit ?? 1000;
  const { rows } = await client.query<MessageRow & { fits: boolean }>({
    name: "history-newest",
    text: `
      SELECT ${messageColumns}, (row_number() OVER w = 1 OR sum(octet_length(parts)) OVER w <= $5) AS fits
      FROM (
        SELECT * FROM parley.messages WHERE session_id = $1 AND seq > $2 AND seq < $3 ORDER BY seq DESC LIMIT $4 + 1
      ) AS page
      WINDOW w AS (ORDER BY seq DESC) ORDER BY seq DESC`,
    values: [
      sessionId,
      range.afterSeq,
      range.beforeSeq ?? Number.MAX_SAFE_INTEGER,
      limit,
      Math.max(0, range.bytes ?? historyBytes),
    ],
  });
  const fitting = rows.slice(0, limit).filter((row) => row.fits);
  return { messages: fitting.toReversed().map(messageOf), gap: fitting.length < rows.length };
}

export const historyHandlers = {
  /** A page of a session's messages. */
  async sessionMessages({ database }, input) {
    return withClient(database, async (client) => {
      if (input.beforeSeq !== undefined) {
        const page = await newest(client, input.sessionId, input);
        return { messages: page.messages, more: page.gap };
      }
      const { rows } = await client.query<MessageRow & { fits: boolean }>(
        `SELECT ${messageColumns}, (row_number() OVER w = 1 OR sum(octet_length(parts)) OVER w <= $4) AS fits
         FROM (SELECT * FROM parley.messages WHERE session_id = $1 AND seq > $2 ORDER BY seq LIMIT $3 + 1) AS page
         WINDOW w AS (ORDER BY seq) ORDER BY seq`,
        [input.sessionId, input.afterSeq, input.limit, historyBytes],
      );
      const fitting = rows.slice(0, input.limit).filter((row) => row.fits);
      return { messages: fitting.map(messageOf), more: fitting.length < rows.length };
    });
  },
} satisfies Partial<Handlers>;
