// A session's to-do list in the store; `store.session.get` returns it.
import { z } from "zod";
import { maxTodos, TodoSchema } from "../todos.ts";
import { Empty, Fenced, storeRequest } from "./shared.ts";

export const sessionTodos = storeRequest({
  subject: "store.session.todos",
  clients: ["agent-core"],
  doc: "Replace a session's to-do list; an empty list removes it. NOT_FOUND when there is no such session.",
  input: z.object({ ...Fenced, sessionId: z.uuid(), todos: z.array(TodoSchema).max(maxTodos) }),
  output: Empty,
});
