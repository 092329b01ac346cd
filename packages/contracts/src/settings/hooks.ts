// Hooks: commands and URLs that run at defined points of the loop and can veto, rewrite or add content.
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
    /** Its name on the bus, in logs and metrics; omitted: its event and position in the list, such as `PreToolUse-0`. */
    name: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, "must be a name such as `guard-exec`")
      .optional(),
    event: z.enum(hookEvents),
    /** The tool's name (or, for events without a tool, the event's matched field): exact, with `*`, or several as `a|b`. Empty or omitted: always. */
    matcher: z.string().optional(),
    /** Only in sessions of this profile; omitted: in all sessions. */
    profile: z.string().min(1).optional(),
    /** A shell command, run by the tool-runner in the folder of parley.toml: JSON on its standard input, JSON on its standard output. */
    command: z.string().min(1).optional(),
    /** A URL to which the same JSON is posted. */
    url: z.url({ protocol: /^https?$/ }).optional(),
    /** Variables of the tool-runner's environment that the command gets; it gets no others. */
    env: z.array(variable).default([]),
    /** Variable of the tool-runner's environment whose value is sent as bearer token. */
    token_env: variable.optional(),
    timeout_seconds: z.number().min(0.1).max(600).default(30),
    /** Effect of a hook that fails or times out: `open`, it is ignored; `closed`, it counts as a denial. */
    on_failure: z.enum(["open", "closed"]).default("open"),
  })
  .refine((hook) => (hook.command === undefined) !== (hook.url === undefined), "set either `command` or `url`")
  .refine((hook) => hook.url === undefined || hook.env.length === 0, "`env` requires `command`")
  .refine((hook) => hook.command === undefined || hook.token_env === undefined, "`token_env` requires `url`");
export type HookSettings = z.infer<typeof HookSettings>;

/** A hook's name: the same in every service that reads the same settings. */
export function hookName(hook: Pick<HookSettings, "name" | "event">, index: number): string {
  return hook.name ?? `${hook.event}-${index}`;
}

/** Hooks run in order; the first hook that stops the turn ends the chain. */
export const HooksSettings = z
  .array(HookSettings)
  .default([])
  .refine((hooks) => new Set(hooks.map(hookName)).size === hooks.length, "two hooks have the same name");
