// A session's to-do list. The agent replaces it as a whole; people can view it.
import { z } from "zod";

const todoStates = ["pending", "in_progress", "completed"] as const;

export const TodoSchema = z.object({
  /** The task. */
  content: z.string().trim().min(1).max(500),
  status: z.enum(todoStates),
  /** The task in the present continuous, shown while it is in progress. */
  activeForm: z.string().trim().max(500).optional(),
});
export type Todo = z.infer<typeof TodoSchema>;

/** Maximum items of one list; a longer plan belongs in a file. */
export const maxTodos = 100;

const marks = { pending: "[ ]", in_progress: "[>]", completed: "[x]" };

/** One line per item, in order. */
export function todosText(todos: readonly Todo[]): string {
  return todos
    .map(({ content, status, activeForm }) => {
      const words = status === "in_progress" && activeForm !== undefined && activeForm !== "" ? activeForm : content;
      return `${marks[status]} ${words}`;
    })
    .join("\n");
}

/** Whether any item is not completed. */
export function isUnfinished(todos: readonly Todo[]): boolean {
  return todos.some(({ status }) => status !== "completed");
}
