// Where the tool `process` asks: the replica that has a process answers for it, this one or another one over the bus.
import type { Bus, Served } from "@parley/bus";
import { toolProcess, toolProcesses, WireError, type ProcessLine, type ProcessQuestion } from "@parley/contracts";
import { failure, success, type ToolContext, type ToolOutput } from "../tool.ts";
import type { Ledger } from "./ledger.ts";
import { answerHere, linesHere, noSuchProcess, type Local } from "./answer.ts";
import { replicaOf, type ProcessViewer } from "./processes.ts";

export interface ProcessDesk {
  /** The processes of a session that one sees, on every replica. */
  list(viewer: ProcessViewer, call: Pick<ToolContext, "grant">): Promise<ToolOutput>;
  ask(question: ProcessQuestion, call: Pick<ToolContext, "signal" | "grant">): Promise<ToolOutput>;
}

/** How long the other replicas have to say what they run. */
const gatherMs = 300;
/** On top of the time a question may wait by itself. */
const answerMs = 5_000;

export function createDesk(bus: Bus, replica: string, local: Local, ledger: Pick<Ledger, "told">): ProcessDesk {
  const askOwner = async (owner: string, question: ProcessQuestion, signal: AbortSignal) => {
    if (owner === replica) return answerHere(question, local, signal);
    const timeoutMs = question.waitMs + answerMs;
    return bus.request(toolProcess, question, { params: { replica: owner }, timeoutMs, signal });
  };
  return {
    list: async (viewer, { grant }) => {
      const others = await bus.gather(toolProcesses, viewer, gatherMs);
      const elsewhere = others.filter((answer) => answer.replica !== replica).flatMap((answer) => answer.processes);
      const lines = [...linesHere(viewer, local.processes), ...elsewhere];
      await ledger.told(
        { grant },
        lines.filter(({ ended }) => ended !== null).map(({ id }) => id),
      );
      return presentList(lines);
    },
    ask: async (question, { signal, grant }) => {
      const owner = replicaOf(question.id);
      if (owner === undefined) return failure(noSuchProcess(question.id));
      try {
        const { content, isError, ended } = await askOwner(owner, question, signal);
        // A call that was cut off shows the model nothing.
        if (ended === true && !signal.aborted) await ledger.told({ grant }, [question.id]);
        return { content, isError };
      } catch (error) {
        if (!WireError.is(error, "UNAVAILABLE", "TIMEOUT")) throw error;
        return failure(
          `The tool-runner "${owner}" that has this process does not answer. If it is gone, the process ended with it.`,
        );
      }
    },
  };
}

/** Answers the other replicas. */
export function serveProcesses(bus: Bus, replica: string, local: Local): Served[] {
  const patient = new AbortController();
  const served = [
    bus.serve(toolProcess, (question) => answerHere(question, local, patient.signal), { replica }),
    bus.serve(toolProcesses, async (viewer) => ({ replica, processes: linesHere(viewer, local.processes) })),
  ];
  return [...served, { close: () => patient.abort() }];
}

function presentList(lines: readonly ProcessLine[]): ToolOutput {
  if (lines.length === 0) return success("No command of this session runs in the background.");
  const sorted = lines.toSorted((a, b) => a.startedAt.localeCompare(b.startedAt));
  return success(
    sorted
      .map(
        ({ id, ended, startedAt, characters, command }) =>
          `${id}  ${ended === null ? "running" : ended}  since ${startedAt}  ${characters} characters  ${command.replaceAll(/\s+/g, " ")}`,
      )
      .join("\n"),
  );
}
