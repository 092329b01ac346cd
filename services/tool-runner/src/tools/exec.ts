// The tool `exec`: a command in the workspace, and its result in words.
import { z } from "zod";
import type { CommandReport, Executor } from "../exec/executor.ts";
import { isolationTag, refusal } from "../exec/isolation.ts";
import type { ExecLimits } from "../exec/limits.ts";
import type { StopReason } from "../exec/run-command.ts";
import { callText, defineTool, failure, type Tool, type ToolOutput } from "../tool.ts";

export interface ExecOptions {
  executor: Executor;
  limits: ExecLimits;
  /** Where the call names no time. */
  defaultTimeoutSeconds: number;
}

/** The longest a command may ask for, unless the deployment's default is longer still. */
const longestTimeoutSeconds = 600;
/** For starting, stopping and settling around the command. */
const marginMs = 15_000;

export function execTool(options: ExecOptions): Tool {
  const longest = Math.max(longestTimeoutSeconds, options.defaultTimeoutSeconds);
  return defineTool({
    name: "exec",
    aliases: ["shell", "bash", "Bash"],
    summary: "Run a shell command in the workspace.",
    description: [
      "Run a shell command in the workspace and see what it prints (both outputs, in order) and its exit code.",
      "It runs in a sandbox without network where the deployment has one; each result says which isolation was active.",
      "Documents (MEMORY.md, memory/, skills/ and the like) are not on its disk: commands do not see them.",
      "Long output is cut in the middle and kept in a file. Nothing goes on in the background after the command has ended.",
    ].join(" "),
    args: z.strictObject({
      command: z.string().min(1).max(100_000).describe("The command line, for the shell."),
      workdir: z.string().min(1).optional().describe("Directory to run in, relative to the workspace."),
      timeout_seconds: z
        .number()
        .int()
        .min(1)
        .max(longest)
        .optional()
        .describe(`Default ${options.defaultTimeoutSeconds}, at most ${longest}.`),
    }),
    class: "once",
    readOnly: false,
    risk: "high",
    effects: ["executes", "reads_files", "writes_files"],
    timeoutMs: longest * 1_000 + marginMs,
    run: async (args, context) => {
      const { isolation } = options.executor;
      if (isolation.kind === "refused") return failure(refusal(isolation.reason));
      if (args.command.includes("\0")) return failure("The command contains a NUL byte.");
      await using place = await context.workspace.resolve(args.workdir ?? ".");
      const seconds = args.timeout_seconds ?? options.defaultTimeoutSeconds;
      const report = await options.executor.run({
        command: args.command,
        place,
        timeoutMs: seconds * 1_000,
        signal: context.signal,
        callName: context.callName,
      });
      return present(report, seconds, options.limits, isolationTag(isolation));
    },
  });
}

/** A command that ended by itself is a result, whatever its code; one that had to be stopped is an error. */
function present(report: CommandReport, seconds: number, limits: ExecLimits, isolation: string): ToolOutput {
  const lines = [body(report)];
  const stopped = stopSentence(report, seconds, limits);
  if (stopped !== undefined) lines.push(`[${stopped}]`);
  if (report.hits.memory) {
    lines.push(
      `[A process was killed: the command used more than its ${inMebibytes(limits.maxMemoryBytes)} of memory.]`,
    );
  }
  if (report.hits.processes) {
    lines.push(`[The command reached its limit of ${limits.maxProcesses} processes; starting more was refused.]`);
  }
  const code = report.exitCode === null ? `killed by ${report.signal ?? "a signal"}` : `exit code ${report.exitCode}`;
  lines.push(`[${code} · ${(report.durationMs / 1_000).toFixed(1)} s · isolation: ${isolation}]`);
  return { content: lines.join("\n"), isError: report.stopped !== undefined };
}

function body(report: CommandReport): string {
  if (report.totalBytes === 0) return "(no output)";
  if (report.missingBytes === 0) return report.head.replace(/\n$/, "");
  const kept = report.spill;
  const where =
    kept === undefined
      ? "they could not be kept."
      : `the first ${kept.bytes} bytes of the output are kept. Read on with: ${callText("read", { path: kept.path })}`;
  const notice = `[… ${report.missingBytes} of ${report.totalBytes} bytes are missing here; ${where}]`;
  return `${report.head.replace(/\n$/, "")}\n\n${notice}\n\n${report.tail.replace(/\n$/, "")}`;
}

function stopSentence(report: CommandReport, seconds: number, limits: ExecLimits): string | undefined {
  if (report.stopped === undefined) return undefined;
  const sentences = {
    timeout: `Stopped: the command did not end within ${seconds} seconds.`,
    cancelled: "Stopped from outside.",
    output_limit: `Stopped: the command printed more than ${inMebibytes(limits.maxOutputBytes)}.`,
    process_limit: `Stopped: the command started more than ${limits.maxProcesses} processes.`,
    memory_limit: `Stopped: the command used more than ${inMebibytes(limits.maxMemoryBytes)} of memory.`,
  } satisfies Record<StopReason, string>;
  return sentences[report.stopped];
}

function inMebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024)} MiB`;
}
