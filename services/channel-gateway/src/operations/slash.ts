// Slash commands as projections of operations: finds the form that a person typed, and converts its arguments to the operation's input.
import { nearestName, slashCommands, type SlashProjection } from "@parley/contracts";
import { splitArguments } from "./mcp.ts";
import { UsageError, type Operation, type Speaker } from "./operation.ts";

/** One form of a command: the operation that it runs. */
export interface SlashForm {
  /** The command's name with its slash, in lower case. */
  command: string;
  /** The words of the subcommand; empty for the command alone. */
  subcommand: readonly string[];
  /** Whether the command has forms with subcommands. */
  hasSubcommands: boolean;
  projection: SlashProjection;
  operation: Operation;
}

/** All forms of the operations. */
export function slashForms(operations: readonly Operation[]): SlashForm[] {
  const forms = operations.flatMap((operation) =>
    (operation.definition.slash ?? []).map((projection) => {
      const [command = "", ...subcommand] = projection.form.split(" ");
      return { command, subcommand, projection, operation };
    }),
  );
  const groups = new Set(forms.flatMap(({ command, subcommand }) => (subcommand.length > 0 ? [command] : [])));
  return forms.map((form) => ({ ...form, hasSubcommands: groups.has(form.command) }));
}

/** The command whose arguments may be in quotes, like those of its servers' prompts. */
const quotingCommand = "/mcp";
const quotedWord = /^(?:[^\s"']+|"[^"]*"|'[^']*')+/;

/** The arguments of a command as separate words. */
export function wordsIn(command: string, rest: string): string[] {
  if (command === quotingCommand) return splitArguments(rest);
  return rest === "" ? [] : rest.split(/\s+/);
}

/** The form that was typed: the one with the longest matching subcommand whose arguments fit. */
export function findForm(forms: readonly SlashForm[], name: string, words: readonly string[]): SlashForm | undefined {
  const matching = forms
    .filter(({ command }) => command === name)
    .filter(({ subcommand }) => subcommand.every((word, index) => words[index]?.toLowerCase() === word))
    .toSorted((a, b) => b.subcommand.length - a.subcommand.length);
  const longest = matching.filter(({ subcommand }) => subcommand.length === matching[0]?.subcommand.length);
  return longest.find((form) => problemOf(form, words.slice(form.subcommand.length)) === undefined) ?? longest.at(-1);
}

/** What is wrong with the arguments of a form; undefined: nothing. */
function problemOf({ projection, hasSubcommands }: SlashForm, words: readonly string[]): string | undefined {
  const all = projection.arguments ?? [];
  const flags = new Set(all.map(({ flag }) => flag));
  const given = words.filter((word) => !flags.has(word.toLowerCase()));
  const expected = all.filter(({ flag }) => flag === undefined);
  const missing = expected.find(({ optional }, index) => optional !== true && given[index] === undefined);
  if (missing !== undefined) return `The ${missing.label ?? missing.field} is required.`;
  if (given.length <= expected.length || expected.at(-1)?.rest === true) return undefined;
  // Only a command without arguments of its own can have subcommands.
  if (all.length === 0 && hasSubcommands) return `Unknown subcommand: ${projection.form} ${given[0] ?? ""}.`;
  return `Unexpected argument: ${given.slice(expected.length).join(" ")}.`;
}

/** Returns the unparsed input of the operation. Throws UsageError when the arguments do not fit the form. */
export function slashInput(form: SlashForm, rest: string, speaker: Speaker): Record<string, unknown> {
  const { projection, operation, subcommand, command } = form;
  const words = wordsIn(command, rest);
  const problem = problemOf(form, words.slice(subcommand.length));
  if (problem !== undefined) throw new UsageError(problem);
  const input: Record<string, unknown> = { ...projection.set };
  const { session: field } = operation.definition;
  for (const each of projection.session ?? (field === undefined ? [] : [field])) input[each] = speaker.route;
  let text = rest.replace(new RegExp(`^(?:\\S+\\s*){${subcommand.length}}`), "");
  const all = projection.arguments ?? [];
  for (const { field, flag } of all) {
    if (flag === undefined || !words.some((word) => word.toLowerCase() === flag)) continue;
    input[field] = true;
    text = text
      .split(/\s+/)
      .filter((word) => word.toLowerCase() !== flag)
      .join(" ");
  }
  for (const { field, rest: takesRest } of all.filter(({ flag }) => flag === undefined)) {
    if (text === "") break;
    const isQuoting = command === quotingCommand;
    const word = takesRest === true ? text : ((isQuoting ? quotedWord : /^\S+/).exec(text)?.[0] ?? "");
    input[field] = isQuoting && takesRest !== true ? (splitArguments(word)[0] ?? "") : word;
    text = text.slice(word.length).trimStart();
  }
  return input;
}

/** The answer to a command that does not exist. */
export function unknownText(name: string): string {
  const near = nearestName(
    name.slice(1),
    slashCommands.map((each) => each.name.slice(1)),
  );
  const hint = near === null ? "" : ` Did you mean /${near}?`;
  return `Unknown command ${name}; nothing was sent to the agent.${hint} /help lists the commands, /stop stops the running turn. To send text that begins with a slash, put a space before it.`;
}
