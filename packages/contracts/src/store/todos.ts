// What a session's agent has set out to do, as the store keeps it; `store.session.get` shows it.
import { z } from "zod";
import { request } from "../contract.ts";
import { maxTodos, TodoSchema } from "../todos.ts";
import { Empty, Fenced } from "./shared.ts";

export const sessionTodos = request({
  subject: "store.session.todos",
  server: "store",
  clients: ["agent-core"],
  doc: "Replace a session's list of what is to be done; an empty one takes it away. NOT_FOUND when there is no such session.",
  input: z.object({ ...Fenced, sessionId: z.uuid(), todos: z.array(TodoSchema).max(maxTodos) }),
  output: Empty,
});
