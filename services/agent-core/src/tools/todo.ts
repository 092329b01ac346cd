// `todo`: the agent's list of what it has set out to do, kept with the session: it outlives a compaction and a restart.
import { isUnfinished, maxTodos, newId, store, TodoSchema, todosText } from "@parley/contracts";
import { z } from "zod";
import { localTool } from "./local-tool.ts";

export const todoTool = localTool({
  name: "todo",
  aliases: ["TodoWrite", "todo_write"],
  summary: "Keep a list of what is to be done.",
  description:
    "Keep a list of what is to be done in work of three steps or more; people see it. Each call gives the whole list, which replaces the one before. Have one item in_progress while you work, mark it completed as soon as it is done, and give an empty list when nothing is left to keep.",
  input: z.object({
    todos: z
      .array(
        z.object({
          content: TodoSchema.shape.content.describe("What is to be done, as an order: Fix the login."),
          status: TodoSchema.shape.status,
          activeForm: TodoSchema.shape.activeForm.describe("The same while it is being done: Fixing the login."),
        }),
      )
      .max(maxTodos)
      .describe("The whole list, in order."),
  }),
  examples: [
    {
      todos: [
        { content: "Find the fault", status: "completed" },
        { content: "Fix the login", status: "in_progress", activeForm: "Fixing the login" },
        { content: "Run the tests", status: "pending" },
      ],
    },
  ],
  class: "idempotent",
  readOnly: false,
  risk: "none",
  effects: [],
  async run({ todos }, { bus, epoch, turn, storeTimeoutMs }) {
    await bus.request(
      store.sessionTodos,
      { opId: newId(), epoch, sessionId: turn.sessionId, todos },
      { timeoutMs: storeTimeoutMs },
    );
    if (todos.length === 0) return { status: "done", content: "The list is empty." };
    const done = isUnfinished(todos) ? "" : "\nAll of it is done.";
    return { status: "done", content: `${todosText(todos)}${done}` };
  },
});
