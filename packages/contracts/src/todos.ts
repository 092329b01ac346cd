// The list of what a session's agent has set out to do: the agent writes it as a whole, people look at it.
import { z } from "zod";

const todoStates = ["pending", "in_progress", "completed"] as const;

export const TodoSchema = z.object({
  /** What is to be done. */
  content: z.string().trim().min(1).max(500),
  status: z.enum(todoStates),
  /** The same in the words of somebody who is at it. */
  activeForm: z.string().trim().max(500).optional(),
});
export type Todo = z.infer<typeof TodoSchema>;

/** Items of one list. A longer one is a plan that belongs into a file. */
export const maxTodos = 100;

const marks = { pending: "[ ]", in_progress: "[>]", completed: "[x]" };

/** A line an item, in order. */
export function todosText(todos: readonly Todo[]): string {
  return todos
    .map(({ content, status, activeForm }) => {
      const words = status === "in_progress" && activeForm !== undefined && activeForm !== "" ? activeForm : content;
      return `${marks[status]} ${words}`;
    })
    .join("\n");
}

/** Something on the list is left to do. */
export function isUnfinished(todos: readonly Todo[]): boolean {
  return todos.some(({ status }) => status !== "completed");
}
