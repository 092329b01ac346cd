// Fills the database with an invented conversation, or with many sessions, as if they had been held.
import { Client } from "pg";

/** Rounds of a person's message, a tool call, its result, and an answer with Markdown. */
function messageOf(n: number): { role: string; parts: object[] } {
  const round = Math.floor(n / 4);
  switch (n % 4) {
    case 0:
      return text("user", `Message ${n}: which of the archives in folder ${round} are older than two days?`);
    case 1: {
      const call = {
        type: "tool_call",
        id: `filled-${round}`,
        name: "exec",
        input: `{"command":"ls -l backups/${round}"}`,
      };
      return { role: "assistant", parts: [{ type: "text", text: `Message ${n}: I list the folder.` }, call] };
    }
    case 2: {
      const content = `a-${round}.tar.zst 4 d\nb-${round}.tar.zst 1 d\n[exit code 0]`;
      const result = { type: "tool_result", id: `filled-${round}`, name: "exec", content, isError: false };
      return { role: "tool", parts: [result] };
    }
    default: {
      const table = `| archive | age |\n|---|---|\n| \`a-${round}\` | 4 d |\n| \`b-${round}\` | 1 d |`;
      const code = "```sh\n# The newest first, so that the rest can go.\nls -t backups | tail -n +4 | xargs -r rm\n```";
      const list = Array.from(
        { length: 1 + (round % 5) },
        (_, item) => `- step **${item}** of the rotation, with \`code\``,
      );
      const blocks = [
        `Message ${n}: one archive is too old.`,
        table,
        list.join("\n"),
        ...(round % 3 === 0 ? [code] : []),
      ];
      return text("assistant", blocks.join("\n\n"));
    }
  }
}

function text(role: string, content: string): { role: string; parts: object[] } {
  return { role, parts: [{ type: "text", text: content }] };
}

/** Adds `count` messages, numbered from 0 in their texts. The session must have had a turn, and no turn may run. */
export async function fillSession(databaseUrl: string, sessionId: string, count: number): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const messages = Array.from({ length: count }, (_, n) => messageOf(n));
    await client.query(
      `WITH last AS (
         SELECT s.seq, (SELECT id FROM parley.turns WHERE session_id = s.id LIMIT 1) AS turn_id FROM parley.sessions s WHERE s.id = $1
       ), filled AS (
         INSERT INTO parley.messages (session_id, seq, turn_id, role, parts, model)
         SELECT $1, last.seq + n, last.turn_id, message ->> 'role', message -> 'parts',
                CASE message ->> 'role' WHEN 'assistant' THEN 'filled' END
         FROM last, jsonb_array_elements($2::jsonb) WITH ORDINALITY AS given (message, n)
       )
       UPDATE parley.sessions SET seq = seq + $3, message_count = message_count + $3 WHERE id = $1`,
      [sessionId, JSON.stringify(messages), count],
    );
  } finally {
    await client.end();
  }
}

/** Adds `count` sessions with the titles `Added session 1` and so on, each older than the one before it. */
export async function addSessions(databaseUrl: string, count: number): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(
      `INSERT INTO parley.sessions (id, key, title, message_count, created_at, updated_at)
       SELECT gen_random_uuid(), 'http:default:added-' || n, 'Added session ' || n, 2, at, at
       FROM generate_series(1, $1::int) AS n, LATERAL (SELECT now() - n * interval '1 minute' AS at) AS times`,
      [count],
    );
    // As PostgreSQL does after some minutes: without statistics every page sorts the whole table.
    await client.query("ANALYZE parley.sessions");
  } finally {
    await client.end();
  }
}
