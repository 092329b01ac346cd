// Permissions: calls that run without approval, require approval, or are denied.
import { z } from "zod";

export const permissionModes = ["default", "accept_edits", "plan", "dont_ask", "bypass", "delegate"] as const;
export type PermissionMode = (typeof permissionModes)[number];

/** The lists of permission rules of a session. */
export const ruleLists = ["allow", "allowTainted", "ask", "deny"] as const;
export type RuleList = (typeof ruleLists)[number];

/**
 * Classes of commands that a deny or ask rule of `exec` can name in place of a pattern, as `exec(@recursive-delete)`. They match
 * regardless of the order and spelling of a command's options. An allow rule with a class allows nothing.
 */
const commandClasses = ["recursive-delete", "block-device-write", "power", "fork-bomb"] as const;
export type CommandClass = (typeof commandClasses)[number];
/** The names that rules use for the tool `exec`: its own and those of other agents. */
const execToolNames: ReadonlySet<string> = new Set(["exec", "shell", "bash", "Bash"]);

/** The command class that the pattern of a rule names; null if the pattern is not the name of a class. */
export function commandClassOf(tool: string, pattern: string): CommandClass | null {
  if (!execToolNames.has(tool)) return null;
  return commandClasses.find((name) => pattern === `@${name}`) ?? null;
}

/** A parsed rule: a tool name, which may contain `*` and `?`, and a pattern for the main argument. A null pattern matches every call. */
export interface PermissionRule {
  tool: string;
  pattern: string | null;
}

/**
 * Parses `exec(git *)`, `write(notes/**)`, `mcp__github__*`. In a pattern `*` matches any text (in paths within one name, `**` any
 * names), `?` one character, and `\` escapes the next character. `problem` continues a sentence that begins with the rule's text.
 */
export function parsePermissionRule(text: string): { rule: PermissionRule } | { problem: string } {
  const parenthesis = text.indexOf("(");
  const tool = parenthesis < 0 ? text : text.slice(0, parenthesis);
  if (!/^[A-Za-z0-9_*?-]{1,128}$/.test(tool)) {
    return { problem: "must begin with the name of a tool, such as `exec`, `exec(git *)` or `mcp__github__*`" };
  }
  if (parenthesis < 0) return { rule: { tool, pattern: null } };
  if (!text.endsWith(")")) return { problem: "must end with the parenthesis that closes its pattern" };
  const pattern = text.slice(parenthesis + 1, -1);
  if (pattern.trim() === "") {
    return { problem: `has an empty pattern; \`${tool}\` without parentheses matches every call` };
  }
  if (tool.startsWith("mcp__")) {
    return { problem: `cannot have a pattern: tools of MCP servers are matched only by name, \`${tool}\`` };
  }
  if (/[*?]/.test(tool)) return { problem: "needs the full name of one tool before its pattern" };
  if (pattern.startsWith("@") && execToolNames.has(tool) && !commandClasses.some((name) => pattern === `@${name}`)) {
    return {
      problem: `names an unknown command class; the classes are ${commandClasses.map((name) => `@${name}`).join(", ")}`,
    };
  }
  if (/(?<!\\)(?:\\\\)*\\$/.test(pattern)) return { problem: "ends in a backslash that escapes nothing" };
  return { rule: { tool, pattern } };
}

/** True for a rule with the full name of one tool: `exec(git *)`, not `*`, `e*` or `mcp__*`. False for a malformed rule. */
export function namesOneTool(text: string): boolean {
  const parsed = parsePermissionRule(text);
  return "rule" in parsed && !/[*?]/.test(parsed.rule.tool);
}

/** One permission rule, as text. */
export const permissionRule = z
  .string()
  .trim()
  .max(2_000)
  .superRefine((text, context) => {
    const parsed = parsePermissionRule(text);
    if ("problem" in parsed) context.addIssue({ code: "custom", message: `\`${text}\` ${parsed.problem}` });
  });

/** An allow rule for untrusted input, such as a webhook's: it must contain the full name of one tool. */
export const SingleToolRule = permissionRule.superRefine((text, context) => {
  if (!("rule" in parsePermissionRule(text)) || namesOneTool(text)) return;
  context.addIssue({
    code: "custom",
    message: `\`${text}\` covers several tools: name each tool a webhook may use in full, such as \`exec(git *)\``,
  });
});

export const PermissionSettings = z
  .strictObject({
    /**
     * `default`: low risk runs, the rest requires approval. `accept_edits`: medium risk runs as well. `plan`: only read-only calls.
     * `dont_ask`: like `default`, but calls that require approval are denied. `bypass`: everything runs unless a deny rule matches.
     * `delegate`: only sub-agents may be started.
     */
    mode: z.enum(permissionModes).default("default"),
    /** `bypass` is refused unless this is true. */
    allow_bypass: z.boolean().default(false),
    /**
     * Calls that owners and users may make without approval. In a tainted turn only rules that name their tool in full apply to
     * effects that carry taint; a wildcard such as `*`, `e*` or `mcp__*` does not. Never applied to guests and webhooks.
     */
    allow: z.array(permissionRule).default([]),
    /** Calls of guests and webhooks that need no approval, beyond reading; in a tainted turn as for `allow`. */
    guest_allow: z.array(permissionRule).default([]),
    /** Calls that never run. A deny rule beats every other rule, every mode and every hook. */
    deny: z.array(permissionRule).default([]),
    /** Calls that require approval each time, regardless of their risk. An ask rule beats an allow rule. */
    ask: z.array(permissionRule).default([]),
    /**
     * How calls are rated that stay within the workspace and the sandbox. `allow`: low risk, because files can be rewound. `ask`: the
     * tool's own risk (writing files medium, commands high except those that only read), and web requests and sub-agents at least medium.
     */
    contained: z.enum(["allow", "ask"]).default("allow"),
    /** How long a person has to decide; after that the call is denied. */
    approval_seconds: z.number().int().min(1).max(86_400).default(900),
    /** How long the code of a person who asks for access is valid. */
    pairing_minutes: z.number().int().min(1).max(1_440).default(60),
    /**
     * How many upcoming jobs each user may have at a time, set with the tool `cron`. They run with that user's rights, in the
     * conversation where they were created. 0: only owners create jobs.
     */
    user_jobs: z.number().int().min(0).max(1_000).default(10),
    /** A tainted turn needs approval for calls that run programs, send data out, change memory or create jobs (docs/taint.md). */
    taint: z.boolean().default(true),
  })
  .superRefine((settings, context) => {
    if (settings.mode !== "bypass" || settings.allow_bypass) return;
    context.addIssue({ code: "custom", path: ["mode"], message: '"bypass" also needs `allow_bypass = true`' });
  })
  .prefault({});
export type PermissionSettings = z.infer<typeof PermissionSettings>;
