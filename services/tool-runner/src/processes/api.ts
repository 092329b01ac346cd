// Routes requests of the tool `process` to the replica that runs the process: this one, or another one over the bus.
import { gatherUntil, type Bus, type Served } from "@parley/bus";
import {
  toolProcess,
  toolProcesses,
  toolStop,
  WireError,
  type ProcessLine,
  type ProcessQuestion,
} from "@parley/contracts";
import { failure, success, type ToolContext, type ToolOutput } from "../tool/tool.ts";
import type { ProcessStoreSync } from "./store-sync.ts";
import { queryLocal, linesHere, noSuchProcess, type Local } from "./local-process.ts";
import { replicaOf, type Processes, type ProcessViewer } from "./processes.ts";

export interface BackgroundProcessApi {
  /** Lists the processes of a session that the viewer may see, on all replicas. */
  list(viewer: ProcessViewer, call: Pick<ToolContext, "grant">): Promise<ToolOutput>;
  /** Runs one action on the process that the question names, on the replica that runs it. */
  control(question: ProcessQuestion, call: Pick<ToolContext, "signal" | "grant">): Promise<ToolOutput>;
}

/** How long to wait for the lists of the other replicas, again and again while one of them is missing. */
const gatherMs = [300, 700, 1_500];
/** How long to wait for killed commands before responding. */
const goneMs = 1_000;
/** Added to the waiting time that the request itself allows. */
const answerMs = 5_000;

/** `others`: the other replicas that have background processes, as far as this one knows. */
export function createProcessApi(
  bus: Bus,
  replica: string,
  local: Local,
  storeSync: Pick<ProcessStoreSync, "markReported">,
  others: () => readonly string[],
): BackgroundProcessApi {
  const askOwner = async (owner: string, question: ProcessQuestion, signal: AbortSignal) => {
    if (owner === replica) return queryLocal(question, local, signal);
    const ask = (asked: ProcessQuestion, options: { signal?: AbortSignal }) => {
      const timeoutMs = asked.waitMs + answerMs;
      return bus.request(toolProcess, asked, { params: { replica: owner }, timeoutMs, ...options });
    };
    if (question.action !== "poll" || question.waitMs === 0) return ask(question, { signal });
    // The owner does not learn that a request was cancelled, and output that a poll returned then would be lost. So `log` waits, which
    // leaves the output for the next poll. An owner of an earlier version does not wait for `log`: its poll waits.
    const startedAt = performance.now();
    await ask({ ...question, action: "log", limit: 1 }, { signal });
    const leftMs = Math.max(0, Math.round(question.waitMs - (performance.now() - startedAt)));
    // Not cancelled: a cancelled call shows the output of its tool.
    return ask({ ...question, waitMs: leftMs }, {});
  };
  return {
    list: async (viewer, { grant }) => {
      const silentIn = (all: readonly { replica: string }[]) =>
        others().filter((name) => !all.some((answer) => answer.replica === name));
      const gather = (waitMs: number) => bus.gather(toolProcesses, viewer, waitMs);
      const answers = await gatherUntil(gatherMs, gather, (all) => silentIn(all).length === 0);
      const listed = new Map(answers.map((answer) => [answer.replica, answer.processes]));
      const lines = [...listed.set(replica, linesHere(viewer, local.processes)).values()].flat();
      await storeSync.markReported(
        { grant },
        lines.filter(({ ended }) => ended !== null).map(({ id }) => id),
      );
      return success(presentList(lines, silentIn(answers)));
    },
    control: async (asked, { signal, grant }) => {
      const question = asked.action === "poll" ? asked : { ...asked, waitMs: 0 };
      const owner = replicaOf(question.id);
      if (owner === undefined) return failure(noSuchProcess(question.id));
      try {
        const { content, isError, ended } = await askOwner(owner, question, signal);
        // The model does not see the result of an aborted call.
        if (ended === true && !signal.aborted) await storeSync.markReported({ grant }, [question.id]);
        return { content, isError };
      } catch (error) {
        if (!WireError.is(error, "UNAVAILABLE", "TIMEOUT")) throw error;
        return failure(
          `The tool-runner "${owner}" that runs this process did not respond. If it has stopped, the process ended with it.`,
        );
      }
    },
  };
}

/** Serves requests of other replicas. */
export function serveProcesses(bus: Bus, replica: string, local: Local): Served[] {
  const closing = new AbortController();
  const served = [
    bus.serve(toolProcess, (question) => queryLocal(question, local, closing.signal), { replica }),
    bus.serve(toolProcesses, async (viewer) => ({ replica, processes: linesHere(viewer, local.processes) })),
  ];
  return [...served, { close: () => closing.abort() }];
}

/** Ends a session's background processes here when a person sends `/stop all`. The gateway has no other control over commands. */
export function serveStop(
  bus: Bus,
  replica: string,
  processes: Processes,
  storeSync: Pick<ProcessStoreSync, "markReported">,
): Served {
  const stop = async (sessionId: string) => {
    const running = processes.ofSession(sessionId).filter(({ end }) => end === undefined);
    const timeout = AbortSignal.timeout(goneMs);
    const ids = running.map(({ id }) => id);
    const ends = running.map(async (entry) => {
      entry.started.signal("SIGKILL");
      await processes.end(entry, goneMs, timeout);
    });
    // In parallel: an unavailable store keeps no command alive, and the exits are not announced while a call waits for them.
    await Promise.all([storeSync.markReported("own", ids), ...ends]);
    return {};
  };
  return bus.serve(toolStop, ({ sessionId }) => stop(sessionId), { replica });
}

/** `silent`: replicas that did not answer. */
function presentList(lines: readonly ProcessLine[], silent: readonly string[]): string {
  const listed = lines
    .toSorted((a, b) => a.startedAt.localeCompare(b.startedAt))
    .map(
      ({ id, ended, startedAt, characters, command }) =>
        `${id}  ${ended === null ? "running" : ended}  since ${startedAt}  ${characters} characters  ${command.replaceAll(/\s+/g, " ")}`,
    );
  const missing = silent.map(
    (name) =>
      `The tool-runner "${name}" did not respond: processes that run there are not listed. If it has stopped, they ended with it.`,
  );
  if (lines.length + silent.length === 0) return "This session has no background processes.";
  return [...listed, ...missing].join("\n");
}
