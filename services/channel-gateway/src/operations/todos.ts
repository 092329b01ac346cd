// /todo: the agent's todo list of this session.
import { todosText } from "@parley/contracts";
import type { Command } from "./hand-written.ts";

export const todoCommands: readonly Command[] = [
  {
    name: "/todo",
    usage: "/todo",
    summary: "show the agent's todo list for this session",
    keepsWindow: true,
    async run({ deps, speaker }) {
      const session = await deps.sessions.find(speaker.route);
      const todos = session?.todos ?? [];
      if (todos.length === 0)
        return "The todo list is empty. The agent creates one for work with several steps; you can ask for it.";
      const done = todos.filter(({ status }) => status === "completed").length;
      return `${done} of ${todos.length} done:\n${todosText(todos)}`;
    },
  },
];
