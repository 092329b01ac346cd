// The tool `process`: the commands of this session that go on in the background. Which replica has one is found by its id.
import { z } from "zod";
import type { ProcessDesk } from "../process/desk.ts";
import { defineTool, processScope, type Tool } from "../tool.ts";

const longestWaitSeconds = 120;

/** By their short names as well. */
const signals = {
  SIGTERM: "SIGTERM",
  SIGINT: "SIGINT",
  SIGKILL: "SIGKILL",
  TERM: "SIGTERM",
  INT: "SIGINT",
  KILL: "SIGKILL",
} as const;

/** Models that know the tool from elsewhere name the process in another way. */
function named(args: {
  id?: string | undefined;
  process_id?: string | undefined;
  pid?: string | undefined;
}): string | undefined {
  return args.id ?? args.process_id ?? args.pid;
}

export function processTool(desk: ProcessDesk): Tool {
  return defineTool({
    name: "process",
    aliases: ["TaskOutput"],
    summary: "List, watch, feed and stop the commands that run in the background.",
    description: [
      "What exec left running in the background, in this session.",
      "`list`: all of them. `poll`: what one has printed since the last poll, and whether it has ended; with wait_seconds, waits for something new.",
      "`log`: any part of its last 100,000 characters. `input`: text for its standard input (only of processes begun with background).",
      "`signal`: SIGTERM or SIGINT to ask it to end, SIGKILL to end all of it.",
    ].join(" "),
    args: z
      .strictObject({
        action: z.enum(["list", "poll", "log", "input", "signal"]).describe("What to do."),
        id: z.string().min(1).optional().describe("Of the process; for all actions but list."),
        process_id: z.string().min(1).optional().describe("The same as id."),
        pid: z.string().min(1).optional().describe("The same as id."),
        wait_seconds: z
          .number()
          .int()
          .min(0)
          .max(longestWaitSeconds)
          .optional()
          .describe("poll: how long to wait for output or the end. Default 0."),
        offset: z.number().int().min(0).optional().describe("log: first character. Default: the first that is kept."),
        limit: z.number().int().min(1).max(30_000).optional().describe("poll, log: most characters. Default 30000."),
        input: z.string().max(100_000).optional().describe("input: the text; a line ends with \\n."),
        end: z.boolean().optional().describe("input: close its standard input afterwards. Default false."),
        signal: z
          .enum(["SIGTERM", "SIGINT", "SIGKILL", "TERM", "INT", "KILL"])
          .transform((name) => signals[name])
          .optional()
          .describe("signal: which. Default SIGTERM."),
      })
      .superRefine((args, check) => {
        if (args.action !== "list" && named(args) === undefined) {
          check.addIssue({ code: "custom", path: ["id"], message: `needed for the action ${args.action}` });
        }
        if (args.action === "input" && args.input === undefined && args.end !== true) {
          check.addIssue({ code: "custom", path: ["input"], message: "needed for the action input" });
        }
      }),
    examples: [
      { action: "poll", id: "p1", wait_seconds: 20 },
      { action: "input", id: "p1", input: "yes\n" },
      { action: "signal", id: "p1", signal: "SIGINT" },
    ],
    class: "once",
    readOnly: false,
    // Input to a shell is a command: what `exec` may not do without a yes, this may not either.
    risk: "high",
    effects: ["executes"],
    resource: { kind: "process", argument: "id" },
    timeoutMs: (longestWaitSeconds + 15) * 1_000,
    limits: [
      "Only processes of the same session are seen, on every tool-runner; by people other than the owner, only those of their own turns.",
      "The last 100,000 characters of a process's output are kept, 30,000 are shown at once; the last 20 that have ended are kept.",
      `poll waits for at most ${longestWaitSeconds} s.`,
    ],
    run: (args, context) => {
      const id = named(args);
      return args.action === "list" || id === undefined
        ? desk.list({ sessionId: context.sessionId, scope: processScope(context) }, context)
        : desk.ask(
            {
              sessionId: context.sessionId,
              scope: processScope(context),
              id,
              action: args.action,
              waitMs: (args.wait_seconds ?? 0) * 1_000,
              offset: args.offset ?? null,
              limit: args.limit ?? 30_000,
              input: args.input ?? "",
              end: args.end ?? false,
              signal: args.signal ?? "SIGTERM",
            },
            context,
          );
    },
  });
}
