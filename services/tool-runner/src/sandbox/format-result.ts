// Formats a command's result for the model: output, stop reason, exit code and isolation. Pure.
import type { CommandReport } from "./executor.ts";
import type { ExecLimits } from "./limits.ts";
import type { StopReason } from "./run-command.ts";
import { callText, type ToolOutput } from "../tool/tool.ts";

export interface ExecConditions {
  /** Wall time limit of the command. */
  timeoutSeconds: number;
  limits: ExecLimits;
  /** One or two words. */
  isolation: string;
}

/** A shell's exit code for a process ended by SIGXCPU: 128 + 24. */
const cpuLimitExit = 152;

/** A command that ended by itself is a result with any exit code; a command that was stopped is an error. */
export function formatReport(report: CommandReport, around: ExecConditions): ToolOutput {
  return { content: [body(report), ...endLines(report, around)].join("\n"), isError: report.stopped !== undefined };
}

/** The lines after the output. */
export function endLines(report: CommandReport, around: ExecConditions): string[] {
  const { limits, isolation } = around;
  const lines: string[] = [];
  const stopped = stopSentence(report, around);
  if (stopped !== undefined) lines.push(`[${stopped}]`);
  if (report.hits.memory) {
    lines.push(
      `[A process was killed: the command exceeded its limit of ${inMebibytes(limits.maxMemoryBytes)} of memory.]`,
    );
  }
  if (report.hits.processes) {
    lines.push(`[The command reached its limit of ${limits.maxProcesses} processes; no more could be started.]`);
  }
  if (limits.maxCpuSeconds !== undefined && (report.signal === "SIGXCPU" || report.exitCode === cpuLimitExit)) {
    lines.push(`[A process was stopped: it exceeded its CPU time limit of ${limits.maxCpuSeconds} s.]`);
  }
  for (const refused of report.refusedHosts ?? []) lines.push(`[Not reached: ${refused}.]`);
  const code = report.exitCode === null ? `killed by ${report.signal ?? "a signal"}` : `exit code ${report.exitCode}`;
  lines.push(`[${code} · ${(report.durationMs / 1_000).toFixed(1)} s · isolation: ${isolation}]`);
  return lines;
}

function body(report: CommandReport): string {
  if (report.totalBytes === 0) return "(no output)";
  if (report.missingBytes === 0) return report.head.replace(/\n$/, "");
  const kept = report.spill;
  const where =
    kept === undefined
      ? "they could not be saved."
      : `the first ${kept.bytes} bytes of the output are saved. Read on with: ${callText("read", { path: kept.path })}`;
  const notice = `[… ${report.missingBytes} of ${report.totalBytes} bytes are omitted here; ${where}]`;
  return `${report.head.replace(/\n$/, "")}\n\n${notice}\n\n${report.tail.replace(/\n$/, "")}`;
}

const freeSpaceHint = "Delete files that are not needed before you write more: du -ah . | sort -h | tail";

function stopSentence(report: CommandReport, { timeoutSeconds, limits }: ExecConditions): string | undefined {
  if (report.stopped === undefined) return undefined;
  const sentences = {
    timeout: `Stopped: the command did not end within ${timeoutSeconds} seconds.`,
    cancelled: "Stopped: the command was cancelled.",
    output_limit: `Stopped: the command printed more than ${inMebibytes(limits.maxOutputBytes)}.`,
    process_limit: `Stopped: the command started more than ${limits.maxProcesses} processes.`,
    memory_limit: `Stopped: the command used more than ${inMebibytes(limits.maxMemoryBytes)} of memory.`,
    workspace_full: `Stopped: the workspace exceeded its quota. ${freeSpaceHint}`,
    disk_full: `Stopped: the disk of the workspace is nearly full. ${freeSpaceHint}`,
  } satisfies Record<StopReason, string>;
  return sentences[report.stopped];
}

function inMebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024)} MiB`;
}
