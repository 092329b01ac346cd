// /stop: cancels the running turn and queued messages; reports or ends background processes.
import { store, toolStop, type OutputOf } from "@parley/contracts";
import { formatAge, oneLine, pluralize } from "./format.ts";
import { startedByOf } from "./started-by.ts";
import type { Command } from "./hand-written.ts";
import { UsageError, type OperationDeps } from "./operation.ts";

type Process = OutputOf<typeof store.processList>["processes"][number];

/** How many processes the answer lists; the others are only counted. */
const namedProcesses = 3;
const commandCharacters = 60;
/** How long a tool-runner may take to end a command. */
const stopMs = 4_000;

/** Describes what was stopped; empty when nothing was. */
function stopText(outcome: { turns: readonly unknown[]; cancelledQueued: number }): string {
  const { turns, cancelledQueued } = outcome;
  const taken =
    cancelledQueued === 0
      ? ""
      : `${pluralize(cancelledQueued, "queued message was", "queued messages were")} cancelled.`;
  const subagents = turns.length > 1 ? ` ${pluralize(turns.length - 1, "sub-agent")} stopped too.` : "";
  if (turns.length === 0) return taken;
  return `Stopped.${subagents}${taken === "" ? "" : ` ${taken}`}`;
}

/** Lists the background processes, and how to end them. */
function goesOn(processes: readonly Process[], stopped: string): string {
  const named = processes
    .slice(0, namedProcesses)
    .map(
      ({ command, startedAt }) =>
        `"${oneLine(command, commandCharacters)}" (since ${formatAge(startedAt, Date.now())})`,
    );
  const others = processes.length > namedProcesses ? ` and ${processes.length - namedProcesses} more` : "";
  const count = pluralize(processes.length, "background process continues", "background processes continue");
  const begin = stopped === "" ? "No turn is running. " : `${stopped} `;
  return `${begin}${count}: ${named.join(", ")}${others}. /stop all ends ${processes.length === 1 ? "it" : "them"}.`;
}

/** Ends the session's processes on each tool-runner. Returns the number of processes that could not be reached. */
async function endAll({ bus }: OperationDeps, processes: readonly Process[]): Promise<number> {
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
    ...(ended === 0 ? [] : [`${pluralize(ended, "background process was", "background processes were")} ended.`]),
    ...(unreached === 0
      ? []
      : [
          `${pluralize(unreached, "background process", "background processes")} could not be reached: the tool-runner is not responding. Try /stop all again in a minute.`,
        ]),
  ];
  return words.join(" ");
}

export const stopCommands: readonly Command[] = [
  {
    name: "/stop",
    usage: "/stop [all]",
    summary: "stop the running turn and cancel queued messages; all: also sub-agents and background processes",
    keepsWindow: true,
    async run({ deps, speaker, words }) {
      const all = words[0]?.toLowerCase() === "all";
      if (words.length > (all ? 1 : 0)) throw new UsageError(`Unexpected argument: "${words.join(" ")}".`);
      const session = await deps.sessions.find(speaker.route);
      if (session === null) return "Nothing is running.";
      const { sessionId } = session;
      const stopped = stopText(
        await deps.cancel({ sessionId, queued: true, background: all, ...startedByOf(speaker) }),
      );
      // Background processes belong to the session, so only the owner sees and ends them.
      if (speaker.role !== "owner") return stopped === "" ? "You have no running turn." : stopped;
      // Listed after the stop: a process that a tool call waited for ends with the call.
      const { processes } = await deps.bus.request(store.processList, { sessionId });
      if (processes.length === 0) return stopped === "" ? "Nothing is running." : stopped;
      return all ? endedText(stopped, processes.length, await endAll(deps, processes)) : goesOn(processes, stopped);
    },
  },
];
