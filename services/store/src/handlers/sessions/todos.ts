// Stores the to-do list of a session.
import { WireError } from "@parley/contracts";
import { runOperation } from "../../db/operation.ts";
import type { Handlers } from "../handler.ts";

export const todoHandlers = {
  sessionTodos({ database }, input) {
    const { sessionId, todos } = input;
    return runOperation(
      database,
      { ...input, lockSession: sessionId },
      {
        name: "todos",
        async run(client, session) {
          if (session === undefined) throw new WireError("NOT_FOUND", `there is no session ${sessionId}`);
          const stored = todos.length === 0 ? null : JSON.stringify(todos);
          await client.query("UPDATE parley.sessions SET todos = $2 WHERE id = $1", [sessionId, stored]);
          return { result: {}, memo: {} };
        },
        replay: () => Promise.resolve({}),
      },
    );
  },
} satisfies Partial<Handlers>;
