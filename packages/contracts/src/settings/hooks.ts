// Hooks: commands and addresses that are asked at named points of the loop and may veto, rewrite or add.
import { z } from "zod";

export const hookEvents = [
  "SessionStart",
  "UserPromptSubmit",
  "PreToolUse",
  "PostToolUse",
  "PostToolUseFailure",
  "PermissionRequest",
  "PreCompact",
  "PostCompact",
  "Stop",
  "SubagentStart",
  "SubagentStop",
  "SessionEnd",
  "Notification",
] as const;
export type HookEvent = (typeof hookEvents)[number];

const HookSettings = z
  .strictObject({
    event: z.enum(hookEvents),
    /** The tool's name (or, where there is no tool, the event's own word), exact or with `*`; left out: always. */
    matcher: z.string().optional(),
    /** A shell command, run by the tool-runner: JSON on its standard input, JSON on its standard output. */
    command: z.string().optional(),
    /** An address that the same JSON is posted to. */
    url: z.url({ protocol: /^https?$/ }).optional(),
    timeout_seconds: z.number().min(0.1).max(600).default(30),
    /** What a hook that fails or is too slow means: `open`, as if it were not there; `closed`, a no. */
    on_failure: z.enum(["open", "closed"]).default("open"),
  })
  .refine((hook) => (hook.command === undefined) !== (hook.url === undefined), "give `command` or `url`, one of them");
export type HookSettings = z.infer<typeof HookSettings>;

/** In order: the first that says stop ends the chain. */
export const HooksSettings = z.array(HookSettings).default([]);
