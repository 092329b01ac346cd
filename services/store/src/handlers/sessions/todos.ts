// To-do lists of sessions.
import { WireError, type InputOf, type OutputOf, type store } from "@parley/contracts";
import type { Database } from "../../db/database.ts";
import { runOperation } from "../../db/operation.ts";

export function put(
  database: Database,
  input: InputOf<typeof store.sessionTodos>,
): Promise<OutputOf<typeof store.sessionTodos>> {
  const { sessionId, todos } = input;
  return runOperation(
    database,
    { ...input, lockSession: sessionId },
    {
      name: "todos",
      async run(client, session) {
        if (session === undefined) throw new WireError("NOT_FOUND", `there is no session ${sessionId}`);
        const kept = todos.length === 0 ? null : JSON.stringify(todos);
        await client.query("UPDATE parley.sessions SET todos = $2 WHERE id = $1", [sessionId, kept]);
        return { result: {}, memo: {} };
      },
      replay: () => Promise.resolve({}),
    },
  );
}
