// Derives the rules that an "always" approval adds to a session. Pure: the caller stores the result.
import { parsePermissionRule, type ClaimedTurn } from "@parley/contracts";
import type { ParsedCall } from "./parsed-call.ts";
import type { PermissionStep } from "./decide.ts";
import { escapePattern } from "./pattern.ts";
import { canonicalText, programOf, type SimpleCommand } from "./shell-words.ts";
import { messagesPeople } from "./tool-traits.ts";
import { webTargetOf } from "./web-access.ts";

export interface AlwaysRules {
  list: "allow" | "allowTainted";
  rules: string[];
}

/** The rules that "always" adds to the session; null when an approval can apply to this one call only. */
export function alwaysRules(
  { root }: Pick<ClaimedTurn, "root">,
  call: ParsedCall,
  tainted: boolean,
  step: PermissionStep,
): AlwaysRules | null {
  // An ask rule requires approval each time, and so does the end of the plan mode.
  if (step === "ask" || step === "mode") return null;
  // Each delivery of a webhook is different input; the operator allows calls in the settings of the webhook.
  if (root.trust === "webhook") return null;
  const exact = tainted ? rulesForTaintedAlways(call) : [];
  if (exact.length > 0) return { list: "allowTainted", rules: exact };
  const rules = rulesForAlways(call);
  return rules.length === 0 ? null : { list: "allow", rules };
}

/**
 * The allow rules that "always" adds for turns without untrusted content. Empty if an approval can apply only to this one call: its
 * programs cannot be determined, it writes files by redirection, or its main argument is unknown.
 */
export function rulesForAlways(call: ParsedCall): string[] {
  const { tool, argument, field } = call;
  switch (argument.kind) {
    case "command": {
      const { commands, hidden } = argument.parsed;
      if (hidden !== null || argument.files.some(({ mode }) => mode === "write")) return [];
      return unique(commands.flatMap(commandPatterns).map((pattern) => `${tool.name}(${pattern})`));
    }
    case "paths":
      if (argument.paths.some(({ names, hasParent }) => names === null || hasParent)) return [];
      return unique(
        argument.paths.map(({ names }) => `${tool.name}(${escapePattern((names ?? []).join("/")) || "."})`),
      );
    case "url":
      return unique(webTargetOf(call)?.rules ?? []);
    case "text":
      return unique([`${tool.name}(${escapePattern(argument.text)})`]);
    case "none":
      return field === null ? [tool.name] : [];
    default:
      return argument satisfies never;
  }
}

/**
 * The allow rules that "always", given in a tainted turn, adds for tainted turns: exactly the approved call, and only if the main
 * argument determines its effect. Empty for a command in another folder, for a command that runs a file of the workspace (the turn
 * can rewrite it without approval), and for tools whose main argument is an action.
 */
export function rulesForTaintedAlways(call: ParsedCall): string[] {
  const { tool, argument, input } = call;
  const web = webTargetOf(call);
  if (web !== null) return unique(web.rules);
  switch (argument.kind) {
    case "command": {
      // What a launcher such as `git -c core.pager=./x` starts can be a file that the turn rewrites without approval.
      const { commands, hidden, launches } = argument.parsed;
      const unknown = hidden !== null || launches !== null;
      const writes = argument.files.some(({ mode }) => mode === "write");
      if (unknown || writes || input["workdir"] !== undefined || commands.some(runsFile)) return [];
      return unique(commands.map((command) => `${tool.name}(${escapePattern(canonicalText(command))})`));
    }
    case "paths":
      return rulesForAlways(call);
    case "text":
      return messagesPeople(tool) ? rulesForAlways(call) : [];
    case "url":
    case "none":
      return [];
    default:
      return argument satisfies never;
  }
}

function unique(rules: readonly string[]): string[] {
  return [...new Set(rules)].filter((rule) => rule.length <= 2_000 && "rule" in parsePermissionRule(rule));
}

/**
 * Read-only sub-commands, each with the options that are allowed with it. Neither sub-command nor option takes an operand, writes a
 * file, sends data or names a program. Git starts programs named in `.git/config`; writing that file requires approval in a tainted
 * turn (`program-files.ts`).
 */
const readOnly: Readonly<Record<string, readonly string[]>> = {
  "docker images": ["-a", "--all"],
  "docker ps": ["-a", "--all"],
  "git branch": ["--show-current"],
  "git diff": ["--cached", "--name-only", "--name-status", "--staged", "--stat"],
  "git log": ["--oneline", "--stat", "-1", "-5", "-10", "-20"],
  "git status": ["--branch", "--porcelain", "--short", "-b", "-s", "-sb"],
};

/** The exact command; for a read-only sub-command with a listed option, all of its listed options. */
function commandPatterns(command: SimpleCommand): string[] {
  const text = canonicalText(command);
  for (const [name, options] of Object.entries(readOnly)) {
    const family = [name, ...options.map((option) => `${name} ${option}`)];
    if (family.includes(text)) return family;
  }
  return [escapePattern(text)];
}

/** Programs that run a file given as argument, or programs that a file of the workspace names. */
const interpreters =
  /^(?:\.|source|sh|bash|dash|zsh|ksh|mksh|ash|fish|csh|tcsh|python[\d.]*|pypy[\d.]*|node|tsx|ts-node|deno|bun|bunx|npm|npx|pnpm|pnpx|yarn|perl|ruby|php|lua|tclsh|Rscript|java|go|cargo|dotnet|swift|awk|gawk|sed|uv|uvx|pytest|tox|nox|make|gmake|cmake|ninja|just|rake|gradle|mvn)$/;

function runsFile({ words }: SimpleCommand): boolean {
  const [first] = words;
  const program = programOf(words);
  return first === undefined || program === undefined || program !== first.value || interpreters.test(program);
}
