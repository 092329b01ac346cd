// The role that each command requires, in a direct conversation and in a group, from the definitions of the operations. Pure;
// docs/commands.md is generated from the same table.
import {
  operations,
  promptCommand,
  slashCommands,
  type ContactRole,
  type OperationDefinition,
} from "@parley/contracts";
import { hasRole, roleRanks as ranks } from "./operation.ts";

export interface AccessRule {
  /** The command's name with its slash, in lower case. */
  command: string;
  /**
   * The subcommands that the row covers, for example `all` or `replies on`. An empty string is the command without arguments; omit
   * `forms` to cover every form.
   */
  forms?: readonly string[];
  /** The minimum role in a conversation with one person. */
  direct: ContactRole;
  /** The minimum role in a group. */
  group: ContactRole;
  /** Additional checks of the command, described for readers of docs/commands.md. */
  condition?: string;
}

/** In the order of /help. Each form of a command has one row. */
export const accessRules: readonly AccessRule[] = defined().toSorted((a, b) => order(a.command) - order(b.command));

/** The rows of the operations. */
function defined(): AccessRule[] {
  const rows = Object.values<OperationDefinition>(operations).flatMap(({ role, slash = [] }) =>
    slash.map(({ form, direct = role, group = direct, condition }) => ({ form, direct, group, condition })),
  );
  const unique = rows.filter((row, index) => rows.findIndex(({ form }) => form === row.form) === index);
  const nameOf = (form: string) => form.split(" ")[0] ?? "";
  return unique.map(({ form, condition, ...roles }) => {
    const command = nameOf(form);
    const hasForms = unique.some((row) => row.form !== form && nameOf(row.form) === command);
    return {
      command,
      ...(hasForms ? { forms: [form.slice(command.length + 1)] } : {}),
      ...roles,
      ...(condition === undefined ? {} : { condition }),
    };
  });
}

function order(command: string): number {
  const listed = command === promptCommand ? "/mcp" : command;
  return slashCommands.findIndex(({ name }) => name === listed);
}

/** The facts about a command's sender that decide access. */
export interface Caller {
  role: ContactRole;
  /** A conversation with one person, as opposed to a group. */
  direct: boolean;
}

/**
 * Returns the row for a command as typed. A form without a row gets the command's strictest row; a command without rows requires the
 * owner.
 */
export function accessRuleFor(name: string, words: readonly string[]): AccessRule {
  const command = name.startsWith("/mcp__") ? promptCommand : name;
  const rows = accessRules.filter((row) => row.command === command);
  const typed = words.join(" ").toLowerCase();
  const matches = rows.flatMap((row) =>
    (row.forms ?? [typed]).filter((form) => isForm(typed, form)).map((form) => ({ row, form })),
  );
  const longest = matches.toSorted((a, b) => b.form.length - a.form.length)[0];
  return longest?.row ?? strictest(rows) ?? { command, direct: "owner", group: "owner" };
}

/** Whether a caller may use at least one form of a command, so that /help lists it. */
export function maySee(name: string, caller: Caller): boolean {
  return accessRules.some((row) => row.command === name && hasRole(caller.role, minimumOf(row, caller)));
}

/** Returns the refusal to send to the caller, or undefined when the caller may use the command. */
export function accessRefusal(name: string, words: readonly string[], caller: Caller): string | undefined {
  const rule = accessRuleFor(name, words);
  const minimum = minimumOf(rule, caller);
  if (hasRole(caller.role, minimum)) return undefined;
  const form = (rule.forms ?? []).find((each) => each !== "" && isForm(words.join(" ").toLowerCase(), each));
  const named = form === undefined ? name : `${name} ${form}`;
  const where = rule.direct === rule.group ? "" : " in a group";
  return minimum === "owner" ? `${named} is for the owner only${where}.` : `${named} is not for guests${where}.`;
}

function minimumOf(rule: AccessRule, { direct }: Caller): ContactRole {
  return direct ? rule.direct : rule.group;
}

function isForm(typed: string, form: string): boolean {
  return typed === form || (form !== "" && typed.startsWith(`${form} `));
}

function strictest(rows: readonly AccessRule[]): AccessRule | undefined {
  return rows.toSorted((a, b) => ranks[b.group] + ranks[b.direct] - ranks[a.group] - ranks[a.direct])[0];
}
