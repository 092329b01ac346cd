// Moves the files that follow a text to the row of the text, for channels that send both in one message.
import type { PoolClient } from "../../db/database.ts";

const join = {
  name: "outbox-join-files",
  text: `
    WITH following AS (
      SELECT t.id AS text_id, f.id, f.attachment
      FROM parley.outbox t
      JOIN parley.outbox f ON f.turn_id = t.turn_id AND f.channel = t.channel AND f.account = t.account
        AND f.conversation = t.conversation AND f.id > t.id AND f.state = 'pending' AND f.attachment IS NOT NULL
      WHERE t.id = ANY($1::bigint[]) AND t.attachment IS NULL AND t.position = 0 AND t.files IS NULL AND t.replaces IS NULL
        AND NOT EXISTS (
          SELECT FROM parley.outbox n WHERE n.turn_id = t.turn_id AND n.channel = t.channel AND n.account = t.account
            AND n.conversation = t.conversation AND n.id > t.id AND n.id < f.id AND n.attachment IS NULL)
    ), moved AS (
      DELETE FROM parley.outbox WHERE id IN (SELECT id FROM following)
    )
    UPDATE parley.outbox o SET files = f.files
    FROM (SELECT text_id, '[' || string_agg(attachment, ',' ORDER BY id) || ']' AS files FROM following GROUP BY text_id) AS f
    WHERE o.id = f.text_id
    RETURNING o.id, o.files`,
};

/** Adds to claimed texts the files that their turns sent right after them, in the transaction of the claim. */
export async function joinFiles(client: PoolClient, claimed: { id: number; files: string | null }[]): Promise<void> {
  if (claimed.length === 0) return;
  const { rows } = await client.query<{ id: number; files: string }>({
    ...join,
    values: [claimed.map(({ id }) => id)],
  });
  for (const { id, files } of rows) {
    const text = claimed.find((each) => each.id === id);
    if (text !== undefined) text.files = files;
  }
}
