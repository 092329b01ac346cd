// Formats a command's result for the model: output, stop reason, exit code and isolation. Pure.
import type { CommandResult } from "./executor.ts";
import type { ExecLimits } from "./limits.ts";
import type { StopReason } from "./run-command.ts";
import { formatCall, type ToolOutput } from "../tool/tool.ts";

export interface ExecConditions {
  /** Wall time limit of the command. */
  timeoutSeconds: number;
  limits: ExecLimits;
  /** The kind of isolation in one or two words, for example `bubblewrap`. */
  isolation: string;
}

/** A shell's exit code for a process ended by SIGXCPU: 128 + 24. */
const cpuLimitExit = 152;

/**
 * The output and the status lines. A command that ended by itself is not an error, with any exit code; one that the service stopped is.
 */
export function formatCommandResult(result: CommandResult, conditions: ExecConditions): ToolOutput {
  return {
    content: [formatOutput(result), ...statusLines(result, conditions)].join("\n"),
    isError: result.stopReason !== undefined,
  };
}

/** The lines after the output: why the command was stopped, which limits it reached, and how it ended. */
export function statusLines(result: CommandResult, conditions: ExecConditions): string[] {
  const { limits, isolation } = conditions;
  const lines: string[] = [];
  const sentence = stopSentence(result, conditions);
  if (sentence !== undefined) lines.push(`[${sentence}]`);
  if (result.limitsReached.memory) {
    lines.push(
      `[A process was killed: the command exceeded its limit of ${inMebibytes(limits.maxMemoryBytes)} of memory.]`,
    );
  }
  if (result.limitsReached.processes) {
    lines.push(`[The command reached its limit of ${limits.maxProcesses} processes; no more could be started.]`);
  }
  if (limits.maxCpuSeconds !== undefined && (result.signal === "SIGXCPU" || result.exitCode === cpuLimitExit)) {
    lines.push(`[A process was stopped: it exceeded its CPU time limit of ${limits.maxCpuSeconds} s.]`);
  }
  for (const refused of result.refusedHosts ?? []) lines.push(`[Not reached: ${refused}.]`);
  const code = result.exitCode === null ? `killed by ${result.signal ?? "a signal"}` : `exit code ${result.exitCode}`;
  lines.push(`[${code} · ${(result.durationMs / 1_000).toFixed(1)} s · isolation: ${isolation}]`);
  return lines;
}

function formatOutput(result: CommandResult): string {
  if (result.totalBytes === 0) return "(no output)";
  if (result.missingBytes === 0) return result.head.replace(/\n$/, "");
  const saved = result.spill;
  const where =
    saved === undefined
      ? "they could not be saved."
      : `the first ${saved.bytes} bytes of the output are saved. Read on with: ${formatCall("read", { path: saved.path })}`;
  const notice = `[… ${result.missingBytes} of ${result.totalBytes} bytes are omitted here; ${where}]`;
  return `${result.head.replace(/\n$/, "")}\n\n${notice}\n\n${result.tail.replace(/\n$/, "")}`;
}

const freeSpaceHint = "Delete files that are not needed before you write more: du -ah . | sort -h | tail";

function stopSentence(result: CommandResult, { timeoutSeconds, limits }: ExecConditions): string | undefined {
  if (result.stopReason === undefined) return undefined;
  const sentences = {
    timeout: `Stopped: the command did not end within ${timeoutSeconds} seconds.`,
    cancelled: "Stopped: the command was cancelled.",
    output_limit: `Stopped: the command printed more than ${inMebibytes(limits.maxOutputBytes)}.`,
    process_limit: `Stopped: the command started more than ${limits.maxProcesses} processes.`,
    memory_limit: `Stopped: the command used more than ${inMebibytes(limits.maxMemoryBytes)} of memory.`,
    workspace_full: `Stopped: the workspace exceeded its quota. ${freeSpaceHint}`,
    disk_full: `Stopped: the disk of the workspace is nearly full. ${freeSpaceHint}`,
  } satisfies Record<StopReason, string>;
  return sentences[result.stopReason];
}

function inMebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024)} MiB`;
}
