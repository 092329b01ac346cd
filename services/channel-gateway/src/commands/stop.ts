// Stopping what is being done, and saying what goes on in the background.
import { store, toolStop, type OutputOf } from "@parley/contracts";
import { ago, oneLine, some } from "../words.ts";
import { startedByOf } from "../started-by.ts";
import { UsageError, type Command, type CommandDeps } from "./command.ts";

type Process = OutputOf<typeof store.processList>["processes"][number];

/** Commands that an answer names; the others are counted. */
const namedProcesses = 3;
const commandCharacters = 60;
/** How long a tool-runner may take to end a command. */
const stopMs = 4_000;

/** What was stopped, in words; empty where nothing was. */
function stopText(outcome: { turns: readonly unknown[]; cancelledQueued: number }): string {
  const { turns, cancelledQueued } = outcome;
  const taken =
    cancelledQueued === 0 ? "" : `${some(cancelledQueued, "waiting message was", "waiting messages were")} taken back.`;
  const subagents = turns.length > 1 ? ` ${some(turns.length - 1, "sub-agent")} with it.` : "";
  if (turns.length === 0) return taken;
  return `Stopped.${subagents}${taken === "" ? "" : ` ${taken}`}`;
}

/** What goes on in the background, and how it is ended. */
function goesOn(processes: readonly Process[], stopped: string): string {
  const named = processes
    .slice(0, namedProcesses)
    .map(({ command, startedAt }) => `"${oneLine(command, commandCharacters)}" (since ${ago(startedAt, Date.now())})`);
  const others = processes.length > namedProcesses ? ` and ${processes.length - namedProcesses} more` : "";
  const count = some(processes.length, "command goes on", "commands go on");
  const begin = stopped === "" ? "No turn is running. " : `${stopped} `;
  return `${begin}In the background ${count}: ${named.join(", ")}${others}. /stop all ends ${processes.length === 1 ? "it" : "them"}.`;
}

/** Has each tool-runner end what a session runs on it. Returns how many commands could not be reached. */
async function endAll({ bus }: CommandDeps, processes: readonly Process[]): Promise<number> {
  const placeOf = ({ sessionId, replica }: Process) => `${sessionId} ${replica}`;
  const unreached = new Set<string>();
  await Promise.all(
    [...new Map(processes.map((each) => [placeOf(each), each])).values()].map(async (one) => {
      const { sessionId, replica } = one;
      await bus
        .request(toolStop, { sessionId }, { params: { replica }, timeoutMs: stopMs })
        .catch(() => unreached.add(placeOf(one)));
    }),
  );
  return processes.filter((each) => unreached.has(placeOf(each))).length;
}

function endedText(stopped: string, count: number, unreached: number): string {
  const ended = count - unreached;
  const words = [
    ...(stopped === "" ? [] : [stopped]),
    ...(ended === 0 ? [] : [`${some(ended, "command")} in the background ${ended === 1 ? "was" : "were"} ended.`]),
    ...(unreached === 0
      ? []
      : [
          `${some(unreached, "command")} could not be reached: the tool-runner does not answer. Try /stop all again in a minute.`,
        ]),
  ];
  return words.join(" ");
}

export const stopCommands: readonly Command[] = [
  {
    name: "/stop",
    usage: "/stop [all]",
    summary: "stop what is being done and take back what waits; all: sub-agents and commands in the background, too",
    keepsWindow: true,
    async run({ deps, speaker, words }) {
      const all = words[0]?.toLowerCase() === "all";
      if (words.length > (all ? 1 : 0)) throw new UsageError(`"${words.join(" ")}" means nothing here.`);
      const session = await deps.sessions.find(speaker.route);
      if (session === null) return "Nothing is running.";
      const { sessionId } = session;
      const stopped = stopText(
        await deps.cancel({ sessionId, queued: true, background: all, ...startedByOf(speaker) }),
      );
      // What goes on in the background is the session's: only the owner is shown it, and ends it.
      if (speaker.role !== "owner") return stopped === "" ? "Nothing of yours is running." : stopped;
      // Asked for after the stop: a command that was waited for ends with its call.
      const { processes } = await deps.bus.request(store.processList, { sessionId });
      if (processes.length === 0) return stopped === "" ? "Nothing is running." : stopped;
      return all ? endedText(stopped, processes.length, await endAll(deps, processes)) : goesOn(processes, stopped);
    },
  },
];
