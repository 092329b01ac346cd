// A dead letter, as after a turn that was given up.
import { Client } from "pg";

/** Makes one processed message with the text a dead letter. Returns the id of its session. */
export async function makeDeadLetter(databaseUrl: string, text: string): Promise<string> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ session_id: string }>(
      `UPDATE parley.inbox SET state = 'dead'
       WHERE id = (SELECT id FROM parley.inbox WHERE state = 'done' AND strpos(parts::text, $1) > 0 LIMIT 1)
       RETURNING session_id`,
      [text],
    );
    const [row] = rows;
    if (row === undefined) throw new Error(`no processed message contains "${text}"`);
    return row.session_id;
  } finally {
    await client.end();
  }
}
