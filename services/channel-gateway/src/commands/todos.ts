// What the agent has set out to do in this conversation.
import { todosText } from "@parley/contracts";
import type { Command } from "./command.ts";

export const todoCommands: readonly Command[] = [
  {
    name: "/todo",
    usage: "/todo",
    summary: "what the agent has set out to do in this conversation, and how far it is",
    keepsWindow: true,
    async run({ deps, speaker }) {
      const session = await deps.sessions.find(speaker.route);
      const todos = session?.todos ?? [];
      if (todos.length === 0)
        return "The agent has no list here. It makes one when work takes several steps; you can ask for it.";
      const done = todos.filter(({ status }) => status === "completed").length;
      return `${done} of ${todos.length} done:\n${todosText(todos)}`;
    },
  },
];
