// Compiles the rules of settings and sessions and matches calls against them. Deny takes precedence over ask, ask over allow. Pure.
import { commandClassOf, parsePermissionRule, type CommandClass } from "@parley/contracts";
import { hasUnmatchedRecipient, type Argument, type ParsedCall } from "./parsed-call.ts";
import { isInClass } from "./command-classes.ts";
import { couldBe } from "./command-paths.ts";
import { compileAnywhere, compileCommand, compilePathPattern, compileText, type Matcher } from "./pattern.ts";
import type { ParsedPath } from "./paths.ts";
import { canonicalText, equivalentForms } from "./shell-words.ts";
import { fileAccessOf, messagesPeople, type FileAccess, type PermissionTool } from "./tool-traits.ts";
import { compileUrl, type UrlMatcher } from "./url-pattern.ts";

export interface RuleLists {
  allow?: readonly string[] | undefined;
  ask?: readonly string[] | undefined;
  deny?: readonly string[] | undefined;
}

interface CompiledRule {
  text: string;
  isTool: Matcher;
  /** Null: the rule applies to every call of its tools. */
  pattern: Pattern | null;
}

/** One pattern, compiled for each kind of argument. */
interface Pattern {
  text: Matcher;
  /** The pattern's text in the rule. */
  source: string;
  /** The class of commands that the rule names instead of a pattern; null for a pattern. */
  commandClass: CommandClass | null;
  command: Matcher;
  /** For a command line that cannot be parsed. */
  anywhere: Matcher;
  path: (names: readonly string[]) => boolean;
  url: UrlMatcher;
}

export interface Rules {
  allow: readonly CompiledRule[];
  ask: readonly CompiledRule[];
  deny: readonly CompiledRule[];
}

/** A rule that decides, and the reason if the rule's text does not show it. */
export interface RuleMatch {
  rule: string;
  why: string | null;
}

/**
 * Merges and compiles rule lists. Rules of settings are validated at load time. An invalid allow rule of a session allows nothing; an
 * invalid deny or ask rule makes every call require approval.
 */
export function compileRules(...lists: readonly RuleLists[]): Rules {
  const all = (kind: keyof RuleLists): string[] => lists.flatMap((list) => list[kind] ?? []);
  const compiled = (kind: keyof RuleLists): { good: CompiledRule[]; bad: CompiledRule[] } => {
    const good: CompiledRule[] = [];
    const bad: CompiledRule[] = [];
    for (const text of all(kind)) {
      const parsed = parsePermissionRule(text);
      if ("rule" in parsed) good.push(compile(text, parsed.rule.tool, parsed.rule.pattern));
      else bad.push(compile(text, "*", null));
    }
    return { good, bad };
  };
  const deny = compiled("deny");
  const ask = compiled("ask");
  return { allow: compiled("allow").good, ask: [...ask.good, ...ask.bad, ...deny.bad], deny: deny.good };
}

function compile(text: string, tool: string, pattern: string | null): CompiledRule {
  const matchers =
    pattern === null
      ? null
      : {
          source: pattern,
          commandClass: commandClassOf(tool, pattern),
          command: compileCommand(pattern),
          anywhere: compileAnywhere(pattern),
          path: compilePathPattern(pattern.startsWith("/workspace/") ? pattern.slice("/workspace".length) : pattern),
          url: compileUrl(pattern),
          text: compileText(pattern),
        };
  return { text, isTool: compileText(tool), pattern: matchers };
}

/** The deny or ask rule that matches; one matching part of the call suffices. */
export function findMatch(rules: readonly CompiledRule[], call: ParsedCall): RuleMatch | null {
  for (const rule of rules) {
    const about = isAbout(rule, call.tool);
    if (about && hits(rule, call)) return { rule: rule.text, why: null };
    if (about && hasUnknownRecipient(call))
      return { rule: rule.text, why: "the call does not name its recipient in `to`" };
    if (about && hidesAccount(call)) return { rule: rule.text, why: "`to` does not name the recipient's account" };
    if (hitsFiles(rule, call)) return { rule: rule.text, why: null };
  }
  return null;
}

/**
 * The deny or ask rule that may apply to a command whose programs or files cannot be determined. Null if there is no such rule, or if
 * everything is known.
 */
export function findPossibleMatch(rules: readonly CompiledRule[], call: ParsedCall): RuleMatch | null {
  const { argument } = call;
  if (argument.kind !== "command") return null;
  const hidden = argument.parsed.hidden ?? argument.parsed.launches;
  for (const rule of rules) {
    if (rule.pattern === null) continue;
    if (isAbout(rule, call.tool)) {
      if (hidden !== null)
        return { rule: rule.text, why: `the programs that the command runs cannot be determined: ${hidden}` };
      const { commandClass } = rule.pattern;
      if (commandClass !== null && isInClass(commandClass, argument.parsed) === "maybe") {
        return { rule: rule.text, why: "the effect of the command is known only at run time" };
      }
    } else if (isForFiles(rule, ["read", "write"]) && (hidden !== null || mayName(rule.pattern, argument))) {
      return { rule: rule.text, why: "the files that the command uses cannot be determined" };
    }
  }
  return null;
}

/** The patterns of rules that deny a tool access to files; the tool-runner, which resolves paths, enforces them. */
export function filePatterns(rules: readonly CompiledRule[], tool: PermissionTool): string[] {
  const access = fileAccessOf(tool);
  return rules.flatMap((rule) => {
    const about = isForFiles(rule, access) || (access.length > 0 && isAbout(rule, tool));
    return about && rule.pattern !== null && rule.pattern.commandClass === null ? [rule.pattern.source] : [];
  });
}

/** The rules that allow the call; each part of the call must be allowed by some rule. */
export function findAllow(rules: readonly CompiledRule[], call: ParsedCall): RuleMatch | null {
  const about = rules.filter((rule) => isAbout(rule, call.tool));
  const whole = about.find(({ pattern }) => pattern === null);
  if (whole !== undefined) return { rule: whole.text, why: null };
  const writes = rules.filter((rule) => isForFiles(rule, ["write"]));
  const texts = allowedBy(about, writes, call.argument);
  return texts === null || texts.length === 0 ? null : { rule: [...new Set(texts)].join(", "), why: null };
}

function isAbout(rule: CompiledRule, tool: PermissionTool): boolean {
  return [tool.name, ...(tool.aliases ?? [])].some((name) => rule.isTool(name));
}

/** Whether the recipient is unknown to rules, which match `to`: a rule for that recipient may apply. */
function hasUnknownRecipient({ tool, argument, input }: ParsedCall): boolean {
  return messagesPeople(tool) && argument.kind === "none" && hasUnmatchedRecipient(input);
}

/** Whether `to` names no account, `channel:conversation`: which one it means is decided when the call runs. */
function hidesAccount({ tool, argument }: ParsedCall): boolean {
  return messagesPeople(tool) && argument.kind === "text" && argument.text.split(":").length === 2;
}

function hits({ pattern }: CompiledRule, { argument, field }: ParsedCall): boolean {
  if (pattern === null) return true;
  switch (argument.kind) {
    case "command":
      return hitsCommand(pattern, argument);
    case "paths":
      return argument.paths.some((path) => hitsPath(pattern, path));
    case "url":
      return pattern.text(argument.written) || (argument.url !== null && pattern.url(argument.url, "forbid"));
    case "text":
      return pattern.text(argument.text);
    case "none":
      // For a tool without a main argument a pattern cannot be matched: the rule then forbids every call.
      return field === null;
    default:
      return argument satisfies never;
  }
}

function hitsCommand(pattern: Pattern, { parsed }: Extract<Argument, { kind: "command" }>): boolean {
  if (pattern.commandClass !== null) return isInClass(pattern.commandClass, parsed) === "yes";
  if (pattern.command(parsed.source) || pattern.command(parsed.source.trim())) return true;
  if (parsed.commands.some((command) => equivalentForms(command).some(pattern.command))) return true;
  return (parsed.hidden ?? parsed.launches) !== null && pattern.anywhere(parsed.source);
}

/** Tool names of file rules: `read` applies to every tool that reads files, `write` to every tool that writes them. */
const fileRules: Readonly<Record<FileAccess, readonly string[]>> = {
  read: ["read", "read_file", "Read"],
  write: ["write", "write_file", "Write"],
};

function isForFiles(rule: CompiledRule, access: readonly FileAccess[]): boolean {
  return access.some((each) => fileRules[each].some((name) => rule.isTool(name)));
}

/** Whether a file rule matches: it applies to every tool that accesses files, and words of a command count as paths. */
function hitsFiles(rule: CompiledRule, { tool, argument, paths }: ParsedCall): boolean {
  const { pattern } = rule;
  if (argument.kind !== "command") {
    return pattern !== null && isForFiles(rule, fileAccessOf(tool)) && paths.some((path) => hitsPath(pattern, path));
  }
  const redirected = argument.files.some(
    ({ path, mode }) => isForFiles(rule, [mode]) && (pattern === null || (path !== null && hitsPath(pattern, path))),
  );
  if (redirected || pattern === null || !isForFiles(rule, ["read", "write"])) return redirected;
  return argument.paths.named.some((path) => hitsPath(pattern, path));
}

/** Whether a word of the command could name a file that the pattern matches, or a parent folder of one. */
function mayName(pattern: Pattern, { paths }: Extract<Argument, { kind: "command" }>): boolean {
  const { named, possible, unknown } = paths;
  return (
    possible.some((path) => hitsPath(pattern, path)) ||
    [...named, ...possible].some(({ names }) => names !== null && couldBe(pattern.source, names)) ||
    unknown.some((names) => couldBe(pattern.source, names))
  );
}

function hitsPath(pattern: Pattern, path: ParsedPath): boolean {
  return (path.names !== null && pattern.path(path.names)) || pattern.text(path.written);
}

/** The rules that together allow every part; null if one part is not allowed. */
function allowedBy(
  about: readonly CompiledRule[],
  writes: readonly CompiledRule[],
  argument: Argument,
): string[] | null {
  switch (argument.kind) {
    case "command": {
      if (argument.parsed.hidden !== null) return null;
      const commands = argument.parsed.commands.map(canonicalText);
      const files = argument.files.filter(({ mode }) => mode === "write");
      return every([
        ...commands.map((text) => about.find(({ pattern }) => pattern?.command(text) === true)),
        ...files.map(({ path }) => writes.find((rule) => path !== null && allowsPath(rule, path))),
      ]);
    }
    case "paths":
      return every(argument.paths.map((path) => about.find((rule) => allowsPath(rule, path))));
    case "url": {
      const { url } = argument;
      return every([about.find(({ pattern }) => url !== null && pattern?.url(url, "allow") === true)]);
    }
    case "text":
      return every([about.find(({ pattern }) => pattern?.text(argument.text) === true)]);
    case "none":
      return null;
    default:
      return argument satisfies never;
  }
}

function every(found: readonly (CompiledRule | undefined)[]): string[] | null {
  const texts = found.flatMap((rule) => (rule === undefined ? [] : [rule.text]));
  return texts.length === found.length ? texts : null;
}

function allowsPath({ pattern }: CompiledRule, path: ParsedPath): boolean {
  if (path.names === null || path.hasParent) return false;
  return pattern === null || pattern.path(path.names);
}
