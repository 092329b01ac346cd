// The tool `exec`: runs a command in the workspace. A command that takes too long, or is called with `background`, becomes a
// background process, which the tool `process` controls.
import { setTimeout as delay } from "node:timers/promises";
import type { ParleySettings } from "@parley/contracts";
import { z } from "zod";
import type { Executor, StartedCommand } from "../sandbox/executor.ts";
import { isolationTag, missingIsolation, leavesWorkspace, refusalText } from "../sandbox/isolation.ts";
import type { ExecLimits } from "../sandbox/limits.ts";
import { keptCharacters, type BackgroundProcess, type Processes } from "../processes/processes.ts";
import { TextRingBuffer } from "../processes/ring-buffer.ts";
import {
  formatCall,
  defineTool,
  failure,
  processScope,
  success,
  type Tool,
  type ToolContext,
  type ToolOutput,
} from "../tool/tool.ts";
import { formatCommandResult } from "../sandbox/format-result.ts";

export interface ExecOptions {
  executor: Executor;
  limits: ExecLimits;
  processes: Processes;
  times: ExecTimes;
  /** Hosts that commands may reach, as in the settings. Default: none. */
  hosts?: readonly string[];
  /** Environment variables of each command that contain secrets. */
  secretNames?: readonly string[];
}

export interface ExecTimes {
  /** Default wall time limit of a foreground command. */
  timeoutSeconds: number;
  /** How long a call waits for a command before it moves to the background; 0 = until it ends. */
  backgroundAfterSeconds: number;
  /** Default and maximum wall time limit in the background. */
  backgroundTimeoutSeconds: number;
}

export function execTimes(exec: ParleySettings["tools"]["exec"]): ExecTimes {
  return {
    timeoutSeconds: exec.timeout_seconds,
    backgroundAfterSeconds: exec.background_after_seconds,
    backgroundTimeoutSeconds: exec.background_timeout_seconds,
  };
}

/** The longest a call waits for a command, unless the deployment's default is longer. */
const longestWaitSeconds = 600;
/** Time for starting, stopping and settling the command. */
const marginMs = 15_000;
/** Linux passes at most 128 KiB in one argument, the terminating NUL byte included. */
const maxCommandBytes = 128 * 1024 - 1;
/** How often the output of a running command is shown. */
const showOutputMs = 1_000;
/** The end of the output that is shown while the command runs. */
const liveCharacters = 2_000;
/** Of a process's output when it moves to the background. */
const shownCharacters = 8_000;

export function execTool(options: ExecOptions): Tool {
  const { times, hosts = [], secretNames = [] } = options;
  const { mountPaths } = options.executor;
  const longestWait = Math.max(longestWaitSeconds, times.timeoutSeconds);
  const longest = Math.max(longestWait, times.backgroundTimeoutSeconds);
  const backgroundNote =
    times.backgroundAfterSeconds === 0
      ? "The call waits until the command ends."
      : `A command still running after ${times.backgroundAfterSeconds} s moves to the background.`;
  return defineTool({
    name: "exec",
    aliases: ["shell", "bash", "Bash"],
    summary: "Run a shell command in the workspace.",
    description: [
      "Run a shell command in the workspace. Returns stdout and stderr in order, and the exit code.",
      networkSentence(hosts),
      ...(secretNames.length === 0
        ? []
        : [
            `In the owner's turns its environment contains these secrets: ${secretNames.join(", ")}; output shows them as ***.`,
          ]),
      ...(mountPaths.length === 0
        ? []
        : [`In the owner's turns it can read, and not change, these folders: ${mountPaths.join(", ")}.`]),
      "Commands cannot see documents (MEMORY.md, memory/, skills/…).",
      `The middle of long output is left out; all of it is saved to a file. ${backgroundNote}`,
      "Set background for servers, watchers and commands that need input; the tool process controls them, and you are notified when they end. Processes started with & end with the command.",
    ].join(" "),
    args: z.strictObject({
      command: z
        .string()
        .min(1)
        .max(100_000)
        .describe("The command line, for the shell.")
        .meta({ modelSchema: "name_only" }),
      workdir: z.string().min(1).optional().describe("Working directory in the workspace."),
      timeout_seconds: z
        .number()
        .int()
        .min(1)
        .max(longest)
        .optional()
        .describe(
          `Stops the command. Default ${times.timeoutSeconds}, in the background ${times.backgroundTimeoutSeconds}.`,
        ),
      wait_seconds: z
        .number()
        .int()
        .min(1)
        .max(longestWait)
        .optional()
        .describe(
          times.backgroundAfterSeconds === 0
            ? "Time before the command moves to the background. Default: until it ends."
            : `Time before it moves to the background. Default ${times.backgroundAfterSeconds}.`,
        ),
      background: z.boolean().optional().describe("Start it in the background."),
      notify: z.boolean().optional().describe("Notify you when it ends. Default true."),
    }),
    examples: [
      { command: "npm test", workdir: "app", timeout_seconds: 300 },
      { command: "python3 -m http.server 8000", background: true },
    ],
    class: "once",
    readOnly: false,
    risk: "high",
    effects: ["executes", "reads_files", "writes_files"],
    timeoutMs: longestWait * 1_000 + marginMs,
    limits: [
      `A command is stopped after ${times.timeoutSeconds} s unless the call sets another limit (at most ${longest} s), in the background after ${times.backgroundTimeoutSeconds} s.`,
      times.backgroundAfterSeconds === 0
        ? "The call waits until the command ends."
        : `After ${times.backgroundAfterSeconds} s the command moves to the background, unless later calls of the same step wait for it.`,
      "The result shows 28,000 bytes from both ends of the output; up to 10 MiB are saved in `.parley/output`. A command that prints more than 64 MiB is stopped.",
      "At most 512 processes, 4 GiB of memory (or half of the machine's) and 1 GiB per file, where the kernel enforces them.",
      "Background processes end with the tool-runner. Their end, or loss, is reported to the session once, with the last 3,000 characters of output, unless a call of `process` has reported it before.",
    ],
    run: async (args, context) => {
      const { executor, processes } = options;
      const { isolation } = executor;
      const shut =
        isolation.kind === "refused"
          ? isolation
          : (missingIsolation(isolation, context.minIsolation) ?? leavesWorkspace(isolation, context.workspace.id));
      if (shut !== undefined) return failure(refusalText(shut));
      if (args.command.includes("\0")) return failure("The command contains a NUL byte.");
      if (Buffer.byteLength(args.command) > maxCommandBytes) {
        return failure(
          `The command is longer than ${maxCommandBytes} bytes in UTF-8. Write it to a file and run that.`,
        );
      }
      const background = args.background ?? false;
      const refused = background ? processes.refusal(context.sessionId) : undefined;
      if (refused !== undefined) return failure(`${refused} The command was not started.`);
      await using place = await context.workspace.resolve(args.workdir ?? ".");
      await context.checkpoint.trackCommand(args.command, place.relative);
      // A cancelled capture fails silently.
      if (context.signal.aborted) return failure("The command was not started: the call was cancelled.");
      const output = new TextRingBuffer(keptCharacters);
      const startedAt = new Date();
      const started = await executor.start({
        command: args.command,
        workspace: context.workspace,
        isOwners: (context.role ?? "owner") === "owner",
        place,
        interactive: background,
        callName: context.callName,
        onOutput: (chunk) => output.push(chunk),
      });
      const withIsolation = (output: ToolOutput): ToolOutput => ({ ...output, isolation: isolation.kind });
      const toBackground = async () => {
        const process = processes.add({
          sessionId: context.sessionId,
          grant: context.grant,
          scope: processScope(context),
          notify: args.notify ?? true,
          command: args.command,
          startedAt,
          started,
          interactive: background,
          output,
          seen: output.end,
          timeoutSeconds: args.timeout_seconds ?? times.backgroundTimeoutSeconds,
        });
        context.waitUntil?.(started.ended);
        await process.known;
        return withIsolation(success(describeStart(process, isolationTag(isolation))));
      };
      // A call that was cancelled meanwhile stops the command below: `/stop all` only finds commands in the background.
      if (background && !context.signal.aborted) return toBackground();
      const timeoutSeconds = Math.min(args.timeout_seconds ?? times.timeoutSeconds, longestWait);
      const waitSeconds = args.wait_seconds ?? (context.hasLaterCalls === true ? 0 : times.backgroundAfterSeconds);
      const hide = showWhileRunning(output, context.progress);
      const ended = await waitFor(started, context.signal, {
        waitMs: waitSeconds === 0 ? Number.POSITIVE_INFINITY : waitSeconds * 1_000,
        timeoutMs: timeoutSeconds * 1_000,
        mayLeave: () => processes.refusal(context.sessionId) === undefined,
      }).finally(hide);
      if (ended === "still_running") return toBackground();
      return withIsolation(
        formatCommandResult(ended, { timeoutSeconds, limits: options.limits, isolation: isolationTag(isolation) }),
      );
    },
  });
}

function networkSentence(hosts: readonly string[]): string {
  return hosts.length === 0
    ? "It runs in a sandbox without network, if there is one; each result names the isolation."
    : `It runs in a sandbox that reaches only these hosts, through the proxy in HTTPS_PROXY: ${hosts.join(", ")}. Each result names the isolation.`;
}

/** Reports the end of the output when there is more. Returns a function that ends the reports. */
function showWhileRunning(output: TextRingBuffer, progress: ToolContext["progress"]): () => void {
  if (progress === undefined) return () => undefined;
  let shown = 0;
  const timer = setInterval(() => {
    const { end } = output;
    if (end === shown) return;
    shown = end;
    const { text } = output.read(Math.max(0, end - liveCharacters), liveCharacters);
    progress({ done: end, total: null, message: "", output: text });
  }, showOutputMs);
  return () => clearInterval(timer);
}

interface Waiting {
  /** The command then moves to the background, if `mayLeave` allows it. */
  waitMs: number;
  /** The command is then stopped. */
  timeoutMs: number;
  mayLeave: () => boolean;
}

async function waitFor(started: StartedCommand, signal: AbortSignal, waiting: Waiting) {
  const abort = () => started.stop("cancelled");
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  const timer = setTimeout(() => started.stop("timeout"), waiting.timeoutMs);
  const over = new AbortController();
  try {
    if (waiting.waitMs < waiting.timeoutMs) {
      const waitElapsed = delay(waiting.waitMs, "still_running" as const, { signal: over.signal }).catch(
        () => started.ended,
      );
      const first = await Promise.race([started.ended, waitElapsed]);
      if (first !== "still_running") return first;
      if (!signal.aborted && waiting.mayLeave()) return first;
    }
    return await started.ended;
  } finally {
    over.abort();
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
  }
}

function describeStart(process: BackgroundProcess, isolation: string): string {
  const { text, from } = process.output.read(Math.max(0, process.seen - shownCharacters), shownCharacters);
  const lines: string[] = [];
  if (from > 0) lines.push(`[${from} earlier characters are not shown]`);
  if (text !== "") lines.push(text.replace(/\n$/, ""));
  lines.push(
    `[Runs in the background as ${process.id} · isolation: ${isolation}. ${process.notify ? "You are notified when it ends. " : ""}See its further output with: ${formatCall("process", { action: "poll", id: process.id })}]`,
  );
  return lines.join("\n");
}
