// Reads, signals and writes to background processes of this replica, and formats the results for the model.
import type { ProcessLine, ProcessQuestion } from "@parley/contracts";
import type { ExecLimits } from "../sandbox/limits.ts";
import { formatCall, failure, success, type ToolOutput } from "../tool/tool.ts";
import { statusLines } from "../sandbox/format-result.ts";
import type { BackgroundProcess, Processes, ProcessViewer } from "./processes.ts";

export interface Local {
  processes: Processes;
  limits: ExecLimits;
  /** A short label, for example `bubblewrap (no network, read-only system)`. */
  isolation: string;
}

/** A signal usually ends a process immediately: the result waits this long for the exit, to include it. */
const afterSignalMs = 1_000;

export interface ProcessAnswer extends ToolOutput {
  /** Whether this result reports the end of the process. */
  ended: boolean;
}

/** Handles a request about a process of this replica; an unknown process, or one of another session, is a failure. */
export async function queryLocal(question: ProcessQuestion, local: Local, signal: AbortSignal): Promise<ProcessAnswer> {
  const entry = local.processes.find(question, question.id);
  if (entry === undefined) return running(failure(noSuchProcess(question.id)));
  if (question.action === "poll" || question.action === "log") {
    await local.processes.news(entry, question.waitMs, signal);
    return question.action === "poll" ? poll(entry, question.limit, local) : log(entry, question, local);
  }
  if (entry.end !== undefined)
    return { ...withState(entry, local, [`${entry.id} accepts no input or signals.`]), isError: true };
  return question.action === "input" ? input(entry, question) : sendSignal(entry, question.signal, local, signal);
}

export function linesHere(viewer: ProcessViewer, processes: Processes): ProcessLine[] {
  return processes.seenBy(viewer).map((entry) => ({
    id: entry.id,
    command: entry.command.slice(0, 200),
    startedAt: entry.startedAt.toISOString(),
    ended: entry.end === undefined ? null : ending(entry.end),
    characters: entry.output.end,
  }));
}

export function noSuchProcess(id: string): string {
  return `No process "${id.slice(0, 100)}" in this session; it may have ended with its tool-runner. List processes with: ${formatCall("process", { action: "list" })}`;
}

function poll(entry: BackgroundProcess, limit: number, local: Local): ProcessAnswer {
  const { text, from, to } = entry.output.read(entry.seen, limit);
  const lost = from - entry.seen;
  entry.seen = to;
  const lines: string[] = [];
  if (lost > 0) lines.push(`[${lost} earlier characters were dropped: only the last 100,000 are stored]`);
  lines.push(text === "" ? "(no new output)" : text.replace(/\n$/, ""));
  if (to < entry.output.end) {
    lines.push(
      `[${entry.output.end - to} more characters. Read on with: ${formatCall("process", { action: "poll", id: entry.id })}]`,
    );
  }
  return withState(entry, local, lines);
}

function log(entry: BackgroundProcess, question: ProcessQuestion, local: Local): ProcessAnswer {
  const { output } = entry;
  const { text, from, to } = output.read(question.offset ?? output.start, question.limit);
  const lines = [text === "" ? "(no output)" : text.replace(/\n$/, "")];
  const rest =
    to < output.end
      ? ` Read on with: ${formatCall("process", { action: "log", id: entry.id, offset: to, limit: question.limit })}`
      : "";
  lines.push(`[Characters ${from} to ${to} of ${output.end}; stored from ${output.start}.${rest}]`);
  return withState(entry, local, lines);
}

async function input(entry: BackgroundProcess, { input: text, end }: ProcessQuestion): Promise<ProcessAnswer> {
  if (!entry.interactive) {
    return running(
      failure(
        `${entry.id} accepts no input: only commands that exec started with background do. Start it again that way.`,
      ),
    );
  }
  try {
    await entry.started.write(text, end);
  } catch {
    return running(failure(`${entry.id} no longer accepts input.`));
  }
  return running(success(`Written: ${text.length} characters${end ? "; standard input is closed" : ""}.`));
}

async function sendSignal(
  entry: BackgroundProcess,
  name: ProcessQuestion["signal"],
  local: Local,
  signal: AbortSignal,
): Promise<ProcessAnswer> {
  if (!entry.started.signal(name)) return running(failure(`${entry.id} could not be signalled: it is ending.`));
  await local.processes.end(entry, afterSignalMs, signal);
  if (entry.end !== undefined) return withState(entry, local, [`${name} was sent.`]);
  const next = formatCall("process", { action: "poll", id: entry.id, wait_seconds: 5 });
  return running(success(`${name} was sent to ${entry.id}. Check its state with: ${next}`));
}

/** A result with the current state, including the exit if it has ended. */
function withState(entry: BackgroundProcess, local: Local, lines: readonly string[]): ProcessAnswer {
  return { ...success([...lines, ...state(entry, local)].join("\n")), ended: entry.end !== undefined };
}

/** A result that reports no exit. */
function running(output: ToolOutput): ProcessAnswer {
  return { ...output, ended: false };
}

function state(entry: BackgroundProcess, { limits, isolation }: Local): string[] {
  if (entry.end === undefined) {
    const seconds = Math.round((Date.now() - entry.startedAt.getTime()) / 1_000);
    return [`[${entry.id} is running · ${seconds} s of at most ${entry.timeoutSeconds} s]`];
  }
  return [
    `[${entry.id} has ended]`,
    ...statusLines(entry.end, { timeoutSeconds: entry.timeoutSeconds, limits, isolation }),
  ];
}

function ending(end: { exitCode: number | null; signal: string | null }): string {
  return end.exitCode === null ? `killed by ${end.signal ?? "a signal"}` : `exit code ${end.exitCode}`;
}
