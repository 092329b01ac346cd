// What a person changes of a session's permissions: rules added, replaced and removed, the mode, and the rules that "always"
// makes of one call. Pure: the caller stores what comes back.
import { parsePermissionRule, type PermissionMode, type SessionOverrides } from "@parley/contracts";
import type { ReadCall } from "./call.ts";
import { escapePattern } from "./glob.ts";
import { canonicalText, programOf, type SimpleCommand } from "./shell-words.ts";

/** The part of a session's overrides that is about permissions. */
export type SessionPermissions = Pick<SessionOverrides, "permissionMode" | "allow" | "ask" | "deny">;

export type PermissionUpdate =
  | { type: "add_rules" | "replace_rules" | "remove_rules"; list: "allow" | "ask" | "deny"; rules: readonly string[] }
  | { type: "set_mode"; mode: PermissionMode };

/**
 * The permissions after a change, or the sentence that says why it is refused: a rule that cannot be understood, or a bypass
 * that the settings do not allow. Refused changes change nothing.
 */
export function updatePermissions(
  session: SessionPermissions,
  update: PermissionUpdate,
  settings: { allow_bypass: boolean },
): { permissions: SessionPermissions } | { refused: string } {
  if (update.type === "set_mode") {
    if (update.mode === "bypass" && !settings.allow_bypass) {
      return { refused: "The mode bypass needs `allow_bypass = true` under [permissions] in the settings." };
    }
    return { permissions: { ...session, permissionMode: update.mode } };
  }
  const old = session[update.list] ?? [];
  if (update.type === "remove_rules") {
    return { permissions: { ...session, [update.list]: old.filter((rule) => !update.rules.includes(rule)) } };
  }
  for (const rule of update.rules) {
    const parsed = parsePermissionRule(rule);
    if ("problem" in parsed) return { refused: `The rule \`${rule}\` ${parsed.problem}.` };
  }
  const kept = update.type === "add_rules" ? old : [];
  return { permissions: { ...session, [update.list]: [...new Set([...kept, ...update.rules])] } };
}

/**
 * The allow rules that let calls like this one run from now on; as narrow as they are useful. None, when a yes can only be
 * meant for this one call: it hides what it runs, writes files by redirection, or has no main argument that is known.
 */
export function rulesForAlways(call: ReadCall): string[] {
  const { tool, argument, field } = call;
  switch (argument.kind) {
    case "command": {
      const { commands, hidden } = argument.reading;
      if (hidden !== null || argument.files.some(({ mode }) => mode === "write")) return [];
      return unique(commands.map((command) => `${tool.name}(${commandPattern(command)})`));
    }
    case "paths":
      if (argument.paths.some(({ names, climbs }) => names === null || climbs)) return [];
      return unique(
        argument.paths.map(({ names }) => `${tool.name}(${escapePattern((names ?? []).join("/")) || "."})`),
      );
    case "url": {
      const { url } = argument;
      const isPlain = url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "";
      return isPlain ? unique([`${tool.name}(${url.origin}/*)`]) : [];
    }
    case "text":
      return unique([`${tool.name}(${escapePattern(argument.text)})`]);
    case "none":
      return field === null ? [tool.name] : [];
    default:
      return argument satisfies never;
  }
}

function unique(rules: readonly string[]): string[] {
  return [...new Set(rules)].filter((rule) => rule.length <= 2_000 && "rule" in parsePermissionRule(rule));
}

/**
 * Sub-commands whose arguments start no other program and send nothing away: for them the rule is about program and
 * sub-command. Every other command is allowed word for word.
 */
const tame: Readonly<Record<string, readonly string[]>> = {
  cargo: ["check", "clippy", "fmt", "tree"],
  docker: ["images", "logs", "ps"],
  git: ["add", "blame", "commit", "diff", "log", "ls-files", "rev-parse", "show", "status"],
  kubectl: ["describe", "get", "logs"],
  npm: ["ls", "outdated", "test", "view"],
  pnpm: ["list", "outdated", "test", "why"],
};

function commandPattern(command: SimpleCommand): string {
  const [first, second] = command.words;
  const program = programOf(command.words);
  const isBare = command.assignments.length === 0 && first?.value === program;
  const isTame = program !== undefined && Object.hasOwn(tame, program) && second?.literal === true;
  if (isBare && isTame && tame[program]?.includes(second.value) === true) return `${program} ${second.value} *`;
  return escapePattern(canonicalText(command));
}
