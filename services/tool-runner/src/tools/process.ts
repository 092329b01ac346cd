// The tool `process`: controls the background processes of this session. The id of a process contains the replica that runs it, so a call
// may run on any replica.
import { z } from "zod";
import type { BackgroundProcessApi } from "../processes/api.ts";
import { defineTool, processScope, type Tool } from "../tool/tool.ts";

const longestWaitSeconds = 120;
/** Time for the replica that runs the process to respond after the wait. */
const responseSeconds = 15;
const maxShownCharacters = 30_000;

/** Signals by the names that a call may contain. */
const signals = {
  SIGTERM: "SIGTERM",
  SIGINT: "SIGINT",
  SIGKILL: "SIGKILL",
  TERM: "SIGTERM",
  INT: "SIGINT",
  KILL: "SIGKILL",
} as const;

/** The id of the process, also under the argument names that similar tools use and models therefore send. */
function processIdOf(args: {
  id?: string | undefined;
  process_id?: string | undefined;
  pid?: string | undefined;
}): string | undefined {
  return args.id ?? args.process_id ?? args.pid;
}

export function processTool(processes: BackgroundProcessApi): Tool {
  return defineTool({
    name: "process",
    aliases: ["TaskOutput", "TaskStop", "BashOutput", "KillShell"],
    summary: "Control background processes.",
    description: [
      "Control the background processes that exec started in this session.",
      "`list`: all processes. `poll`: output since the last poll, and whether the process has ended; wait_seconds waits for new output or the end.",
      "`log`: any part of the last 100,000 characters of output. `input`: send text to standard input (only if the process was started with background).",
      "`signal`: SIGTERM or SIGINT to ask the process to end, SIGKILL to end it and all its children.",
    ].join(" "),
    args: z
      .strictObject({
        action: z.enum(["list", "poll", "log", "input", "signal"]).describe("What to do."),
        id: z.string().min(1).optional().describe("The process id. Required except for list."),
        process_id: z.string().min(1).optional().describe("Alias of id.").meta({ modelSchema: "hidden" }),
        pid: z.string().min(1).optional().describe("Alias of id.").meta({ modelSchema: "hidden" }),
        wait_seconds: z
          .number()
          .int()
          .min(0)
          .max(longestWaitSeconds)
          .optional()
          .describe("poll: how long to wait for output or the end. Default 0."),
        offset: z
          .number()
          .int()
          .min(0)
          .optional()
          .describe("log: first character. Default: the first one still stored."),
        limit: z
          .number()
          .int()
          .min(1)
          .max(maxShownCharacters)
          .optional()
          .describe("poll, log: maximum number of characters. Default 30000."),
        input: z.string().max(100_000).optional().describe("input: the text; end a line with \\n."),
        end: z.boolean().optional().describe("input: close standard input afterwards. Default false."),
        signal: z
          .enum(["SIGTERM", "SIGINT", "SIGKILL", "TERM", "INT", "KILL"])
          .transform((name) => signals[name])
          .optional()
          .describe("signal: the signal to send. Default SIGTERM."),
      })
      .superRefine((args, context) => {
        if (args.action !== "list" && processIdOf(args) === undefined) {
          context.addIssue({ code: "custom", path: ["id"], message: `required for the action ${args.action}` });
        }
        if (args.action === "input" && args.input === undefined && args.end !== true) {
          context.addIssue({ code: "custom", path: ["input"], message: "required for the action input" });
        }
      }),
    examples: [
      { action: "poll", id: "p1", wait_seconds: 20 },
      { action: "input", id: "p1", input: "yes\n" },
      { action: "signal", id: "p1", signal: "SIGINT" },
    ],
    class: "once",
    readOnly: false,
    // Input to a shell is a command and needs the same approval as `exec`.
    risk: "high",
    effects: ["executes"],
    resource: { kind: "process", argument: "id" },
    timeoutMs: (longestWaitSeconds + responseSeconds) * 1_000,
    limits: [
      "Shows only processes of the same session, on every tool-runner; people other than the owner see only those of their own turns.",
      "The last 100,000 characters of a process's output are stored, and 30,000 are shown at once; the last 20 ended processes are kept.",
      `poll waits for at most ${longestWaitSeconds} s.`,
    ],
    run: (args, context) => {
      const id = processIdOf(args);
      return args.action === "list" || id === undefined
        ? processes.list({ sessionId: context.sessionId, scope: processScope(context) }, context)
        : processes.control(
            {
              sessionId: context.sessionId,
              scope: processScope(context),
              id,
              action: args.action,
              waitMs: (args.wait_seconds ?? 0) * 1_000,
              offset: args.offset ?? null,
              limit: args.limit ?? maxShownCharacters,
              input: args.input ?? "",
              end: args.end ?? false,
              signal: args.signal ?? "SIGTERM",
            },
            context,
          );
    },
  });
}
