// Stopping what is being done.
import { some } from "../words.ts";
import { UsageError, type Command } from "./command.ts";

/** What was stopped, in words. */
function stopText(outcome: { turns: readonly unknown[]; cancelledQueued: number }): string {
  const { turns, cancelledQueued } = outcome;
  const taken =
    cancelledQueued === 0 ? "" : `${some(cancelledQueued, "waiting message was", "waiting messages were")} taken back.`;
  const subagents = turns.length > 1 ? ` ${some(turns.length - 1, "sub-agent")} with it.` : "";
  if (turns.length === 0) return taken === "" ? "Nothing is running." : taken;
  return `Stopped.${subagents}${taken === "" ? "" : ` ${taken}`}`;
}

export const stopCommands: readonly Command[] = [
  {
    name: "/stop",
    usage: "/stop [all]",
    summary: "stop what is being done and take back what waits; all: sub-agents in the background, too",
    who: "guest",
    keepsWindow: true,
    async run({ deps, speaker, words }) {
      const all = words[0]?.toLowerCase() === "all";
      if (words.length > (all ? 1 : 0)) throw new UsageError(`"${words.join(" ")}" means nothing here.`);
      const session = await deps.sessions.find(speaker.route);
      if (session === null) return "Nothing is running.";
      return stopText(await deps.cancel({ sessionId: session.sessionId, queued: true, background: all }));
    },
  },
];
