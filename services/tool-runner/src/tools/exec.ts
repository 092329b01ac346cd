// The tool `exec`: a command in the workspace. It is waited for, and goes on in the background when that takes too long or was
// asked for; `process` is the tool for what is there.
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import type { Executor, StartedCommand } from "../exec/executor.ts";
import { isolationTag, lacking, leavesWorkspace, refusal } from "../exec/isolation.ts";
import type { ExecLimits } from "../exec/limits.ts";
import { keptCharacters, type BackgroundProcess, type Processes } from "../process/processes.ts";
import { TextRing } from "../process/text-ring.ts";
import { callText, defineTool, failure, processScope, success, type Tool, type ToolOutput } from "../tool.ts";
import { presentReport } from "./exec-result.ts";

export interface ExecOptions {
  executor: Executor;
  limits: ExecLimits;
  processes: Processes;
  times: ExecTimes;
  /** Hosts that commands reach, as the settings list them; left out: none. */
  hosts?: readonly string[];
  /** Variables of each command that hold secrets. */
  secretNames?: readonly string[];
}

export interface ExecTimes {
  /** Wall time of a command that is waited for, where the call names none. */
  timeoutSeconds: number;
  /** How long a command is waited for before it goes on in the background; 0 = until its end. */
  backgroundAfterSeconds: number;
  /** Wall time in the background, where the call names none, and the most it may name. */
  backgroundTimeoutSeconds: number;
}

/** The longest a command is waited for, unless the deployment's default is longer still. */
const longestWaitSeconds = 600;
/** For starting, stopping and settling around the command. */
const marginMs = 15_000;
/** Of what a process has printed when it goes to the background. */
const shownCharacters = 8_000;

export function execTool(options: ExecOptions): Tool {
  const { times, hosts = [], secretNames = [] } = options;
  const longestWait = Math.max(longestWaitSeconds, times.timeoutSeconds);
  const longest = Math.max(longestWait, times.backgroundTimeoutSeconds);
  const patience =
    times.backgroundAfterSeconds === 0
      ? "It is waited for until it ends."
      : `A command still running after ${times.backgroundAfterSeconds} s goes on in the background: the result then names its id for the tool process.`;
  return defineTool({
    name: "exec",
    aliases: ["shell", "bash", "Bash"],
    summary: "Run a shell command in the workspace.",
    description: [
      "Run a shell command in the workspace and see what it prints (both outputs, in order) and its exit code.",
      networkSentence(hosts),
      ...(secretNames.length === 0
        ? []
        : [
            `In the owner's turns its environment holds these secrets: ${secretNames.join(", ")}; printed, they show as ***.`,
          ]),
      "Documents (MEMORY.md, memory/, skills/ and the like) are not on its disk: commands do not see them.",
      `Long output is cut in the middle and kept in a file. ${patience}`,
      "With background it goes there at once, for servers, watchers and what needs input. You are told when it ends: do not wait for it without need. What a command leaves behind with & is ended with it.",
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
        .describe(
          `Wall time after which it is stopped. Default ${times.timeoutSeconds}, in the background ${times.backgroundTimeoutSeconds}; at most ${longest}.`,
        ),
      wait_seconds: z
        .number()
        .int()
        .min(1)
        .max(longestWait)
        .optional()
        .describe(
          times.backgroundAfterSeconds === 0
            ? "How long to wait before it goes on in the background. Default: until it ends."
            : `How long to wait before it goes on in the background. Default ${times.backgroundAfterSeconds}.`,
        ),
      background: z.boolean().optional().describe("Do not wait: answer with the id of the process. Default false."),
      notify: z
        .boolean()
        .optional()
        .describe("In the background: you are told when it has ended, in a message of its own. Default true."),
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
      `A command is stopped after ${times.timeoutSeconds} s unless the call says otherwise (at most ${longest} s), in the background after ${times.backgroundTimeoutSeconds} s.`,
      times.backgroundAfterSeconds === 0
        ? "It is waited for until it ends."
        : `After ${times.backgroundAfterSeconds} s it goes on in the background.`,
      "The result shows 28,000 bytes, from both ends; up to 10 MiB are kept in `.parley/output`. A command that prints more than 64 MiB is stopped.",
      "At most 512 processes, 4 GiB of memory (or half of the machine's), 1 GiB a file, where the kernel counts them.",
      "Processes in the background end with the tool-runner. Their end, or loss, is told to the session once, with the last 3,000 characters of output, unless a call of `process` has told it before.",
    ],
    run: async (args, context) => {
      const { executor, processes } = options;
      const { isolation } = executor;
      const shut =
        isolation.kind === "refused"
          ? isolation
          : (lacking(isolation, context.minIsolation) ?? leavesWorkspace(isolation, context.workspace.id));
      if (shut !== undefined) return failure(refusal(shut));
      if (args.command.includes("\0")) return failure("The command contains a NUL byte.");
      const background = args.background ?? false;
      const refused = background ? processes.refusal(context.sessionId) : undefined;
      if (refused !== undefined) return failure(`${refused} The command was not started.`);
      await using place = await context.workspace.resolve(args.workdir ?? ".");
      await context.checkpoint.trackCommand(args.command, place.relative);
      const output = new TextRing(keptCharacters);
      const startedAt = new Date();
      const started = await executor.start({
        command: args.command,
        workspace: context.workspace,
        secrets: (context.role ?? "owner") === "owner",
        place,
        interactive: background,
        callName: context.callName,
        onOutput: (chunk) => output.push(chunk),
      });
      const told = (output: ToolOutput): ToolOutput => ({ ...output, isolation: isolation.kind });
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
        context.outlives?.(started.ended);
        await process.known;
        return told(success(describeStart(process, isolationTag(isolation))));
      };
      if (background) return toBackground();
      const timeoutSeconds = Math.min(args.timeout_seconds ?? times.timeoutSeconds, longestWait);
      const waitSeconds = args.wait_seconds ?? times.backgroundAfterSeconds;
      const ended = await waitFor(started, context.signal, {
        waitMs: waitSeconds === 0 ? Number.POSITIVE_INFINITY : waitSeconds * 1_000,
        timeoutMs: timeoutSeconds * 1_000,
        mayLeave: () => processes.refusal(context.sessionId) === undefined,
      });
      if (ended === "goes on") return toBackground();
      return told(presentReport(ended, { timeoutSeconds, limits: options.limits, isolation: isolationTag(isolation) }));
    },
  });
}

function networkSentence(hosts: readonly string[]): string {
  return hosts.length === 0
    ? "It runs in a sandbox without network where the deployment has one; each result says which isolation was active."
    : `It runs in a sandbox; of the network it reaches only these hosts, by the proxy in HTTPS_PROXY: ${hosts.join(", ")}. Each result says which isolation was active.`;
}

interface Waiting {
  /** After so long the command is left to itself, where it may be. */
  waitMs: number;
  /** After so long it is stopped. */
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
      const patience = delay(waiting.waitMs, "goes on" as const, { signal: over.signal }).catch(() => started.ended);
      const first = await Promise.race([started.ended, patience]);
      if (first !== "goes on") return first;
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
  if (from > 0) lines.push(`[${from} characters before this are not shown]`);
  if (text !== "") lines.push(text.replace(/\n$/, ""));
  lines.push(
    `[Runs in the background as ${process.id} · isolation: ${isolation}. ${process.notify ? "You are told when it ends. " : ""}See what it does next with: ${callText("process", { action: "poll", id: process.id })}]`,
  );
  return lines.join("\n");
}
