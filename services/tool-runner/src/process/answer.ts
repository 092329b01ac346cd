// What is done with one background process of this replica, and how it is told to the model.
import type { ProcessLine, ProcessQuestion } from "@parley/contracts";
import type { ExecLimits } from "../exec/limits.ts";
import { callText, failure, success, type ToolOutput } from "../tool.ts";
import { endLines } from "../tools/exec-result.ts";
import type { BackgroundProcess, Processes, ProcessViewer } from "./processes.ts";

export interface Local {
  processes: Processes;
  limits: ExecLimits;
  /** In a word or two. */
  isolation: string;
}

/** A signal usually ends a process at once: the answer waits for that so long, and tells it. */
const afterSignalMs = 1_000;

export interface ProcessAnswer extends ToolOutput {
  /** It says that the process has ended, and how. */
  ended: boolean;
}

/** Answers for a process of this replica; one that is not there, or is another session's, is a failure. */
export async function answerHere(question: ProcessQuestion, local: Local, signal: AbortSignal): Promise<ProcessAnswer> {
  const entry = local.processes.find(question, question.id);
  if (entry === undefined) return running(failure(noSuchProcess(question.id)));
  if (question.action === "poll") {
    await local.processes.news(entry, question.waitMs, signal);
    return poll(entry, question.limit, local);
  }
  if (question.action === "log") return log(entry, question, local);
  if (entry.end !== undefined) return { ...withState(entry, local, [`${entry.id} takes nothing.`]), isError: true };
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
  return `There is no process "${id.slice(0, 100)}" in this session. It may have ended with its tool-runner. See what there is with: ${callText("process", { action: "list" })}`;
}

function poll(entry: BackgroundProcess, limit: number, local: Local): ProcessAnswer {
  const { text, from, to } = entry.output.read(entry.seen, limit);
  const lost = from - entry.seen;
  entry.seen = to;
  const lines: string[] = [];
  if (lost > 0) lines.push(`[${lost} characters before this are gone: only the last 100,000 are kept]`);
  lines.push(text === "" ? "(nothing new)" : text.replace(/\n$/, ""));
  if (to < entry.output.end) {
    lines.push(
      `[${entry.output.end - to} more characters. Read on with: ${callText("process", { action: "poll", id: entry.id })}]`,
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
      ? ` Read on with: ${callText("process", { action: "log", id: entry.id, offset: to, limit: question.limit })}`
      : "";
  lines.push(`[Characters ${from} to ${to} of ${output.end}; kept from ${output.start} on.${rest}]`);
  return withState(entry, local, lines);
}

async function input(entry: BackgroundProcess, { input: text, end }: ProcessQuestion): Promise<ProcessAnswer> {
  if (!entry.interactive) {
    return running(
      failure(
        `${entry.id} takes no input: only commands that exec began with background do. Start it again in that way.`,
      ),
    );
  }
  try {
    await entry.started.write(text, end);
  } catch {
    return running(failure(`${entry.id} takes no input any more.`));
  }
  return running(success(`Written: ${text.length} characters${end ? ", and its standard input is closed" : ""}.`));
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
  const next = callText("process", { action: "poll", id: entry.id, wait_seconds: 5 });
  return running(success(`${name} was sent to ${entry.id}. See what it does with: ${next}`));
}

/** An answer that says how it stands, and so of its end, where that has come. */
function withState(entry: BackgroundProcess, local: Local, lines: readonly string[]): ProcessAnswer {
  return { ...success([...lines, ...state(entry, local)].join("\n")), ended: entry.end !== undefined };
}

/** An answer that says nothing of an end. */
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
    ...endLines(entry.end, { timeoutSeconds: entry.timeoutSeconds, limits, isolation }),
  ];
}

function ending(end: { exitCode: number | null; signal: string | null }): string {
  return end.exitCode === null ? `killed by ${end.signal ?? "a signal"}` : `exit code ${end.exitCode}`;
}
