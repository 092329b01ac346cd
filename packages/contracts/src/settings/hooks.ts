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

const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the name of an environment variable");

const HookSettings = z
  .strictObject({
    /** What the bus, the log and the metrics call it; left out: its event and its place in the list, as `PreToolUse-0`. */
    name: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, "must be a name such as `guard-exec`")
      .optional(),
    event: z.enum(hookEvents),
    /** The tool's name (or, where there is no tool, the event's own word): exact, with `*`, several as `a|b`. Empty or left out: always. */
    matcher: z.string().optional(),
    /** A shell command, run by the tool-runner in the folder of parley.toml: JSON on its standard input, JSON on its standard output. */
    command: z.string().min(1).optional(),
    /** An address that the same JSON is posted to. */
    url: z.url({ protocol: /^https?$/ }).optional(),
    /** Variables of the tool-runner's environment that the command sees; it sees nothing else of it. */
    env: z.array(variable).default([]),
    /** Variable of the tool-runner's environment whose value goes with the post, as a bearer token. */
    token_env: variable.optional(),
    timeout_seconds: z.number().min(0.1).max(600).default(30),
    /** What a hook that fails or is too slow means: `open`, as if it were not there; `closed`, a no. */
    on_failure: z.enum(["open", "closed"]).default("open"),
  })
  .refine((hook) => (hook.command === undefined) !== (hook.url === undefined), "give `command` or `url`, one of them")
  .refine((hook) => hook.url === undefined || hook.env.length === 0, "`env` is for a `command`")
  .refine((hook) => hook.command === undefined || hook.token_env === undefined, "`token_env` is for a `url`");
export type HookSettings = z.infer<typeof HookSettings>;

/** The name a hook is known by: the same in every service that reads the same settings. */
export function hookName(hook: Pick<HookSettings, "name" | "event">, index: number): string {
  return hook.name ?? `${hook.event}-${index}`;
}

/** In order: the first that says stop ends the chain. */
export const HooksSettings = z
  .array(HookSettings)
  .default([])
  .refine((hooks) => new Set(hooks.map(hookName)).size === hooks.length, "two hooks have the same name");
