// `todo`: the agent's task list. The store keeps it with the session, so that it survives compactions and restarts.
import { isUnfinished, maxTodos, store, TodoSchema, todosText } from "@parley/contracts";
import { z } from "zod";
import { localTool } from "./local-tool.ts";

export const todoTool = localTool({
  name: "todo",
  aliases: ["TodoWrite", "todo_write"],
  summary: "Keep a list of tasks to do.",
  description:
    "Keep a to-do list for work of three or more steps; people can see it. Each call contains the full list, which replaces the previous one. Keep one item in_progress while you work, mark it completed as soon as it is done, and send an empty list when no item needs to be kept.",
  input: z.object({
    todos: z
      .array(
        z.object({
          content: TodoSchema.shape.content.describe("The task in the imperative: Fix the login."),
          status: TodoSchema.shape.status,
          activeForm: TodoSchema.shape.activeForm.describe("The task in progressive form: Fixing the login."),
        }),
      )
      .max(maxTodos)
      .describe("The full list, in order."),
  }),
  examples: [
    {
      todos: [
        { content: "Find the bug", status: "completed" },
        { content: "Fix the login", status: "in_progress", activeForm: "Fixing the login" },
        { content: "Run the tests", status: "pending" },
      ],
    },
  ],
  class: "idempotent",
  readOnly: false,
  risk: "none",
  effects: [],
  async run({ todos }, { leaderStore, turn }) {
    await leaderStore.request(store.sessionTodos, { sessionId: turn.sessionId, todos });
    if (todos.length === 0) return { status: "done", content: "The list is empty." };
    const done = isUnfinished(todos) ? "" : "\nAll items are completed.";
    return { status: "done", content: `${todosText(todos)}${done}` };
  },
});
